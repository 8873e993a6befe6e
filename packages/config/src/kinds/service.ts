/** Service: a name with ports, and the pods behind it. */
import {
  boolean,
  defaulted,
  enumeration,
  integer,
  intOrString,
  list,
  map,
  notYet,
  object,
  optional,
  required,
  string,
} from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { exportAnnotations } from "../rules/export-to.ts";
import { clusterAddress, dnsLabel, exportedNamespace, hostName } from "../schema/formats.ts";
import { labelKey, labelValue } from "../schema/label-formats.ts";
import { defineKind } from "./definition.ts";
import { labelNamedMetadata } from "./metadata.ts";

const port = integer({ minimum: 1, maximum: 65_535 });

const servicePort = object({
  name: optional(string(dnsLabel), "Name of the port; its prefix tells the protocol (`http-web`)."),
  port: required(port, "Port of the Service."),
  targetPort: optional(intOrString(), "Port of the pods, by number or name; the same as `port` when missing."),
  protocol: defaulted(enumeration(["TCP", "UDP", "SCTP"]), "TCP", "Transport protocol."),
  appProtocol: optional(string(), "Protocol, over the name: http, http2, grpc, https or tcp."),
  nodePort: optional(integer({ minimum: 0, maximum: 65_535 }), "Port on every node."),
});

const serviceFields = {
  type: defaulted(
    enumeration(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]),
    "ClusterIP",
    "How it is reached.",
  ),
  selector: optional(map(string(labelValue), labelKey), "Labels of the pods behind it."),
  ports: defaulted(list(servicePort), [], "Ports."),
  clusterIP: optional(string(clusterAddress), "Address, or `None` for a headless Service."),
  clusterIPs: optional(list(string(clusterAddress)), "Addresses."),
  externalName: notYet(
    string(hostName),
    "DNS name that an ExternalName Service stands for.",
    "leaves the Service without endpoints",
  ),
  externalTrafficPolicy: optional(enumeration(["Cluster", "Local"]), "Whether outside traffic stays on its node."),
  internalTrafficPolicy: optional(enumeration(["Cluster", "Local"]), "Whether inside traffic stays on its node."),
  externalIPs: optional(
    list(string(clusterAddress)),
    "Addresses outside; those of a gateway of a network, by which other networks come in.",
  ),
  loadBalancerSourceRanges: notYet(
    list(string()),
    "Clients that a load balancer lets through.",
    "lets all clients through",
  ),
  sessionAffinity: optional(enumeration(["None", "ClientIP"]), "Whether a client stays with a pod."),
  sessionAffinityConfig: optional(
    object({
      clientIP: optional(
        object({
          timeoutSeconds: optional(
            integer({ minimum: 1, maximum: 86_400 }),
            "How long after its last connection; default 10800.",
          ),
        }),
        "Of ClientIP.",
      ),
    }),
    "How long a client stays.",
  ),
  ipFamilies: optional(list(enumeration(["IPv4", "IPv6"])), "Which kinds of addresses it has."),
  ipFamilyPolicy: optional(
    enumeration(["SingleStack", "PreferDualStack", "RequireDualStack"]),
    "Whether it has addresses of both kinds.",
  ),
  publishNotReadyAddresses: optional(boolean(), "Whether pods count before they are ready."),
} as const;

/** Kubernetes asks for names when there are several ports, and for names and numbers that differ. */
function portsDiffer(spec: ObjectValue<typeof serviceFields>, report: Report): void {
  const names = new Set<string>();
  const numbers = new Set<string>();
  spec.ports.forEach(({ name, port: number, protocol }, index) => {
    if (name === undefined) {
      if (spec.ports.length > 1) {
        report({ path: ["ports", index], message: "each port of a Service with several ports needs a name" });
      }
    } else {
      if (names.has(name)) report({ path: ["ports", index, "name"], message: `the port name "${name}" is used twice` });
      names.add(name);
    }
    const key = `${number}/${protocol}`;
    if (numbers.has(key)) report({ path: ["ports", index, "port"], message: `the port ${key} is listed twice` });
    numbers.add(key);
  });
}

/** Kubernetes takes any annotation, and what no namespace is called is seen by nobody. */
function exportsFit({ metadata: { annotations = {} } }: AnnotatedFields, report: Report): void {
  for (const name of exportAnnotations) {
    const text = annotations[name] ?? "";
    for (const entry of text === "" ? [] : text.split(",")) {
      const problem = exportedNamespace.check(entry.trim());
      if (problem === undefined) continue;
      report({
        code: "IST0125",
        path: ["metadata", "annotations", name],
        message: `${problem}: no namespace sees the Service by it`,
        suggestion: 'Write namespaces joined by commas, "." for the own one, "*" for all, or "~" for none.',
      });
    }
  }
}

interface AnnotatedFields {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
}

const serviceStatus = object(
  {
    loadBalancer: optional(
      object({
        ingress: optional(
          list(object({ ip: optional(string(), "Address.") }, { unread: ["hostname", "ipMode", "ports"] })),
          "Where the load balancer is.",
        ),
      }),
      "What the platform says of the load balancer.",
    ),
  },
  { unread: ["conditions"] },
);

export const service = defineKind({
  kind: "Service",
  plural: "services",
  shortNames: ["svc"],
  apiVersions: ["v1"],
  scope: "Namespaced",
  affects: "routing",
  writtenBy: "user",
  unknownField: "warning",
  description: "A name with ports, and the pods behind it.",
  schema: object(
    {
      metadata: required(labelNamedMetadata, "Metadata."),
      spec: required(
        object(serviceFields, {
          rules: [portsDiffer],
          unread: [
            "allocateLoadBalancerNodePorts",
            "healthCheckNodePort",
            "loadBalancerClass",
            "loadBalancerIP",
            "trafficDistribution",
          ],
        }),
        "The Service.",
      ),
      status: optional(serviceStatus, "As the platform sees it."),
    },
    { rules: [exportsFit] },
  ),
});
