// The text of `tulle x describe`, in the words of istioctl's.
import { wrapText } from "../../printing/wrap-text.ts";
import { type EnforcedPolicy, policyName } from "../../proxy-admin/enforced-policies.ts";
import type { DescribedService, ExposureFacts, PodFacts, ServiceFacts, VirtualServiceFacts } from "./describe-facts.ts";

/** What the proxy enforces now; undefined where none answers. */
interface Enforced {
  readonly policies: readonly EnforcedPolicy[] | undefined;
}

/** A section's lines; each is indented by three spaces a level. */
type Section = readonly string[];

export function podText(facts: PodFacts & Enforced, columns: number | undefined): string {
  const { services } = facts;
  const sections: Section[] = [
    podLines(facts),
    ...(services.length === 0
      ? [["No Service selects this pod: nobody reaches it by a name."]]
      : services.map(serviceLines)),
    policyLines(facts),
    mutualTlsLines(facts),
    tokenLines(facts),
    ...exposureSections(facts.exposures),
  ];
  return render(sections, columns);
}

export function serviceText(facts: DescribedService & Enforced, columns: number | undefined): string {
  const pods =
    facts.pods.length === 0 ? "WARNING: no pod has the labels of its selector" : `Pods: ${facts.pods.join(", ")}`;
  const [title = "", ...rest] = serviceLines(facts);
  const policies = facts.pods.length === 0 ? [] : policyLines({ ...facts, proxy: "sidecar" });
  return render([[title, indented(pods), ...rest], policies, ...exposureSections(facts.exposures)], columns);
}

function render(sections: readonly Section[], columns: number | undefined): string {
  const width = Math.min(columns ?? 20, 20);
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map((line) => `${wrapIndented(line, columns)}\n`).join(""))
    .join(`${"-".repeat(width)}\n`);
}

function wrapIndented(line: string, columns: number | undefined): string {
  const own = /^ */.exec(line)![0];
  return own + wrapText(line.slice(own.length), columns === undefined ? undefined : columns - own.length, `${own}   `);
}

function indented(line: string): string {
  return `   ${line}`;
}

function podLines({ name, namespace, ports, proxy, ready, notReadyBecause: because }: PodFacts): Section {
  const list = ports.map(({ port, container }) => `${port} (${container})`).join(", ");
  return [
    `Pod: ${name}.${namespace}`,
    indented(list === "" ? "Pod does not expose ports" : `Pod Ports: ${list}`),
    ...(ready ? [] : ["WARNING: the pod is not ready, and Services do not send to it"]),
    ...(because === undefined ? [] : [`  ${because}`]),
    ...(proxy === "none" ? ["WARNING: the pod is not part of the mesh: it has no proxy"] : []),
  ];
}

function serviceLines({ name, namespace, ports, destinationRules, virtualServices }: ServiceFacts): Section {
  return [
    `Service: ${name}.${namespace}`,
    ...ports.map((port) =>
      indented(`Port: ${port.name} ${port.port}/${port.protocol} targets pod port ${port.targetPort}`),
    ),
    ...destinationRules.flatMap((rule) => [
      `DestinationRule: ${rule.name}.${rule.namespace} for "${rule.host}"`,
      ...subsetLines(rule).map(indented),
      ...(rule.tlsMode === undefined ? [] : [indented(`Traffic Policy TLS Mode: ${rule.tlsMode}`)]),
      ...(rule.policies.length === 0 ? [] : [indented(`Policies: ${rule.policies.join(", ")}`)]),
      ...(rule.tlsMode === undefined && rule.policies.length === 0 ? [indented("No Traffic Policy")] : []),
    ]),
    ...virtualServices.flatMap(virtualServiceLines),
  ];
}

function subsetLines({ matchingSubsets, otherSubsets }: ServiceFacts["destinationRules"][number]): Section {
  if (matchingSubsets.length + otherSubsets.length === 0) return [];
  const others = otherSubsets.length === 0 ? "" : ` (not ${otherSubsets.join(", ")})`;
  if (matchingSubsets.length === 0) return [`WARNING: belongs to no subset${others}`];
  return [`Matching subsets: ${matchingSubsets.join(", ")}${others}`];
}

function virtualServiceLines({ name, namespace, routes, otherRoutes }: VirtualServiceFacts): Section {
  const title = `VirtualService: ${name}.${namespace}`;
  if (routes.length === 0) return [title, indented(`WARNING: none of its ${otherRoutes} route(s) leads here`)];
  return [
    title,
    ...routes.flatMap(({ matches, destinations }) => [
      indented(`Match: ${matches.length === 0 ? "everything" : matches.join("; or ")}`),
      ...destinations.map((each) => indented(indented(`Route to ${each}`))),
    ]),
    ...(otherRoutes === 0 ? [] : [indented(`${otherRoutes} more route(s) that lead elsewhere`)]),
  ];
}

function policyLines({ policies, proxy }: Enforced & Pick<PodFacts, "proxy">): Section {
  if (proxy === "none") return [];
  if (policies === undefined) return ["RBAC policies: unknown, the proxy does not answer"];
  if (policies.length === 0) return ["RBAC policies: none, everyone is answered"];
  return [
    "RBAC policies:",
    ...policies.map((policy) => {
      const rules = policy.rules === 1 ? "1 rule" : `${policy.rules} rules`;
      return indented(`${policy.action}${policy.dryRun ? " (dry run)" : ""} ${policyName(policy)}, ${rules}`);
    }),
  ];
}

function mutualTlsLines({ mutualTls }: PodFacts): Section {
  if (mutualTls === undefined) return [];
  const applied = mutualTls.applied.map(({ name, namespace }) => `${name}.${namespace}`).join(", ");
  return [
    "Effective PeerAuthentication:",
    indented(`Workload mTLS mode: ${mutualTls.mode}`),
    ...Object.entries(mutualTls.ports).map(([port, mode]) => indented(`Port ${port} mTLS mode: ${mode}`)),
    ...(applied === "" ? [] : ["Applied PeerAuthentication:", indented(applied)]),
  ];
}

function tokenLines({ requestAuthentications }: PodFacts): Section {
  return requestAuthentications.flatMap(({ name, namespace, issuers }) => [
    `RequestAuthentication: ${name}.${namespace}`,
    ...issuers.map((issuer) => indented(`Tokens of ${issuer}`)),
  ]);
}

function exposureSections(exposures: readonly ExposureFacts[]): readonly Section[] {
  const byGateway = Map.groupBy(
    exposures,
    ({ gateway, urls }) =>
      `${gateway.name}.${gateway.namespace}${urls.length === 0 ? "" : ` at ${urls.join(" and ")}`}`,
  );
  return [...byGateway].map(([title, group]) => [
    `Exposed on Ingress Gateway ${title}`,
    ...group.flatMap(({ virtualService }) => virtualServiceLines(virtualService)),
  ]);
}
