/**
 * TLS of DestinationRules that does not protect, or cannot work. IST0128, IST0129: the server is not checked. IST0113:
 * the rule and the PeerAuthentication of a workload behind its host contradict each other. IST0133: a Secret for
 * sidecars, which get none.
 */
import { modeOfPort, mutualTlsModes, peerAuthenticationScope } from "../rules/mutual-tls-mode.ts";
import type { ClientTls, DestinationRule, Service } from "../kinds/resource.ts";
import type { Path } from "../findings/places.ts";
import { selects } from "../rules/label-selector.ts";
import { type AnalyzedMesh, type Analyzer, type Discovery, injectionOf } from "./analyzer.ts";

/** One place where a rule speaks of TLS. */
interface TlsSetting {
  readonly tls: ClientTls;
  readonly path: Path;
  /** Undefined for all ports but those with settings of their own. */
  readonly port?: number;
  /** Ports that are not meant. */
  readonly exceptPorts: readonly number[];
  readonly labels: Readonly<Record<string, string>>;
}

export const destinationRuleTls: Analyzer = {
  name: "destination-rule-tls",
  codes: ["IST0113", "IST0128", "IST0129", "IST0133"],
  *run(mesh) {
    for (const resource of mesh.list("DestinationRule")) {
      for (const setting of settingsOf(resource)) {
        yield* unchecked(resource, setting);
        yield* conflict(mesh, resource, setting);
      }
    }
  },
};

function settingsOf({ spec }: DestinationRule): readonly TlsSetting[] {
  const at = (policy: DestinationRule["spec"]["trafficPolicy"], path: Path, labels: TlsSetting["labels"]) => {
    const ports = policy?.portLevelSettings ?? [];
    const exceptPorts = ports.map(({ port }) => port.number);
    const own = policy?.tls === undefined ? [] : [{ tls: policy.tls, path: [...path, "tls"], exceptPorts, labels }];
    const ofPorts = ports.flatMap(({ tls, port }, index): readonly TlsSetting[] =>
      tls === undefined
        ? []
        : [{ tls, path: [...path, "portLevelSettings", index, "tls"], port: port.number, exceptPorts: [], labels }],
    );
    return [...own, ...ofPorts];
  };
  return [
    ...at(spec.trafficPolicy, ["spec", "trafficPolicy"], {}),
    ...(spec.subsets ?? []).flatMap(({ trafficPolicy, labels = {} }, index) =>
      at(trafficPolicy, ["spec", "subsets", index, "trafficPolicy"], labels),
    ),
  ];
}

function* unchecked(resource: DestinationRule, { tls, path, port }: TlsSetting): Generator<Discovery> {
  const { mode, insecureSkipVerify = false, credentialName } = tls;
  if (mode !== "SIMPLE" && mode !== "MUTUAL") return;
  if (insecureSkipVerify) {
    yield {
      code: port === undefined ? "IST0128" : "IST0129",
      resource,
      path: [...path, "insecureSkipVerify"],
      message: "the server's certificate is not checked: whoever answers is believed",
      suggestion: 'Name its authorities in "caCertificates" instead.',
    };
  }
  if (credentialName !== undefined) {
    yield {
      code: "IST0133",
      severity: "info",
      resource,
      path: [...path, "credentialName"],
      message:
        "Secrets reach gateways alone: sidecars check the server against the authorities of their machine, and show no certificate",
      suggestion: 'For sidecars, name files: "caCertificates", "clientCertificate", "privateKey".',
    };
  }
}

/** A port that is STRICT takes the mesh's TLS alone, one that is DISABLE, or has no proxy, any but that. */
function* conflict(mesh: AnalyzedMesh, resource: DestinationRule, setting: TlsSetting): Generator<Discovery> {
  const { metadata, spec } = resource;
  const service = mesh.servicesByHost.get(mesh.resolve(spec.host, metadata.namespace));
  if (service === undefined) return;
  const { mode = "DISABLE" } = setting.tls;
  const found = workloadPorts(mesh, service, setting).find(
    ({ accepts }) => accepts !== "anything" && (accepts === "mesh TLS") !== (mode === "ISTIO_MUTUAL"),
  );
  if (found === undefined) return;
  const takes = found.accepts === "mesh TLS" ? "mutual TLS of the mesh alone (STRICT)" : found.accepts;
  yield {
    code: "IST0113",
    resource,
    path: [...setting.path, "mode"],
    message: `port ${found.port} of ${found.workload} takes ${takes}, and the rule says ${mode}: no request will pass`,
    suggestion:
      found.accepts === "mesh TLS"
        ? "Leave tls out: callers of the mesh use what the workload takes."
        : "Leave tls out, or let the workload take mutual TLS.",
  };
}

interface WorkloadPort {
  readonly workload: string;
  readonly port: number;
  readonly accepts: "mesh TLS" | "anything" | "no TLS of the mesh";
}

function workloadPorts(mesh: AnalyzedMesh, service: Service, setting: TlsSetting): readonly WorkloadPort[] {
  const { selector = {}, ports } = service.spec;
  if (Object.keys(selector).length === 0) return [];
  const policies = mesh.list("PeerAuthentication").map(peerAuthenticationScope);
  const meant = ports.filter(({ port }) =>
    setting.port === undefined ? !setting.exceptPorts.includes(port) : port === setting.port,
  );
  return mesh.workloads
    .filter(({ namespace }) => namespace === service.metadata.namespace)
    .filter(({ labels }) => selects(selector, labels) && selects(setting.labels, labels))
    .flatMap((workload) => {
      const { containers } =
        workload.resource.kind === "Pod" ? workload.resource.spec : workload.resource.spec.template.spec;
      const declared = containers.flatMap((container) => container.ports ?? []);
      const modes = mutualTlsModes(policies, workload);
      const hasSidecar = injectionOf(mesh, workload) === "sidecar";
      return meant.flatMap(({ port, targetPort = port }): readonly WorkloadPort[] => {
        const number =
          typeof targetPort === "number" ? targetPort : declared.find(({ name }) => name === targetPort)?.containerPort;
        if (number === undefined) return [];
        const mode = hasSidecar ? modeOfPort(modes, number) : "DISABLE";
        const accepts = mode === "STRICT" ? "mesh TLS" : mode === "DISABLE" ? "no TLS of the mesh" : "anything";
        const { kind, metadata } = workload.resource;
        return [{ workload: `the ${kind} ${metadata.namespace}/${metadata.name}`, port: number, accepts }];
      });
    });
}
