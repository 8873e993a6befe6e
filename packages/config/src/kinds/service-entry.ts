/** ServiceEntry: hosts that are no Service of the cluster, as if they were. Field list of Istio 1.31. */
import { enumeration, integer, list, map, object, optional, required, string } from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { dnsLabel, exportedNamespace, hostName, quote, wildcardName } from "../schema/formats.ts";
import type { Format } from "../schema/formats.ts";
import { splitIpBlock } from "../schema/ip-block.ts";
import { selectedLabelKey, selectedLabelValue } from "../schema/label-formats.ts";
import { entryProtocol, isHttp } from "../rules/port-protocol.ts";
import { noDryRun } from "./dry-run.ts";
import { defineKind, networkingApiVersions } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";
import { isAddress, workloadEndpoints } from "./workload-entry.ts";

const port = integer({ minimum: 1, maximum: 65_535 });

const entryHost: Format = {
  ...wildcardName,
  description: 'a DNS name, or a wildcard as "*.example.com"',
  check: (value) => (value === "*" ? '"*" would be every host' : wildcardName.check(value)),
  warn: (value) =>
    /^\*[^.]/.test(value) ? `${quote(value)} is a wildcard within a label: write "*.example.com"` : undefined,
};

const addressBlock: Format = {
  name: "address",
  description: "an IP address, or a range as 10.0.0.0/8",
  check: (value) =>
    splitIpBlock(value) === undefined ? `${quote(value)} is no ${addressBlock.description}` : undefined,
  jsonSchema: { maxLength: 64 },
};

const protocol: Format = {
  name: "protocol",
  description: "HTTP, HTTPS, HTTP2, GRPC, GRPC-WEB, TLS, TCP, MONGO, REDIS or MYSQL, in any case",
  check: (value) =>
    value === "" || entryProtocol(value) !== undefined ? undefined : `${quote(value)} is no protocol that is known`,
  jsonSchema: { maxLength: 256 },
};

const servicePort = object({
  number: required(port, "Port that clients name."),
  protocol: optional(string(protocol), "Protocol; the first bytes of a connection tell it when missing."),
  name: required(string(dnsLabel), "Name of the port, by which endpoints say theirs."),
  targetPort: optional(port, "Port of the endpoints; `number` when missing."),
});

const entryFields = {
  hosts: required(list(string(entryHost), { minItems: 1 }), "Names by which clients call it."),
  addresses: optional(
    list(string(addressBlock)),
    "Addresses that clients may name. Hosts without any have one of 240.240.0.0/16 and one of 2001:2::/48, by which captured workloads find them.",
  ),
  ports: optional(list(servicePort), "Ports."),
  location: optional(
    enumeration(["MESH_EXTERNAL", "MESH_INTERNAL"]),
    "MESH_INTERNAL: its workloads are of the mesh, and those with a service account are spoken to by mutual TLS.",
  ),
  resolution: optional(
    enumeration(["NONE", "STATIC", "DNS", "DNS_ROUND_ROBIN", "DYNAMIC_DNS"]),
    "How proxies find the endpoints: they are written (STATIC), or looked up, each address in turn (DNS) or one at a time (DNS_ROUND_ROBIN), or under the name that a request or TLS asks for (DYNAMIC_DNS); with NONE, which stands where none is written, connections go where the client wants.",
  ),
  endpoints: optional(workloadEndpoints, "Endpoints; the host itself is looked up when there are none."),
  workloadSelector: optional(
    object({ labels: optional(map(string(selectedLabelValue), selectedLabelKey), "Labels that they have.") }),
    "WorkloadEntries and pods of its namespace that are its endpoints; for STATIC.",
  ),
  exportTo: optional(list(string(exportedNamespace)), "Namespaces that see it; all when missing."),
  subjectAltNames: optional(
    list(string()),
    "Names of which its servers' certificates must have one, where a DestinationRule names none.",
  ),
} as const;

type Spec = ObjectValue<typeof entryFields>;

/** Istio's rules of a list of namespaces; `~`, nobody, stands alone. */
function exportsFit({ exportTo = [] }: Spec, report: Report): void {
  const seen = new Set<string>();
  exportTo.forEach((entry, index) => {
    if (seen.has(entry)) report({ path: ["exportTo", index], message: `${quote(entry)} is listed twice` });
    seen.add(entry);
  });
  for (const [sign, meaning] of Object.entries({ "*": "every namespace", "~": "nobody" })) {
    if (exportTo.length > 1 && exportTo.includes(sign))
      report({ path: ["exportTo"], message: `${quote(sign)} stands for ${meaning}, and others are listed beside it` });
  }
}

function portsDiffer({ ports = [] }: Spec, report: Report): void {
  const names = new Set<string>();
  const numbers = new Set<number>();
  ports.forEach(({ name, number }, index) => {
    if (names.has(name))
      report({ path: ["ports", index, "name"], message: `the port name ${quote(name)} is used twice` });
    if (numbers.has(number)) report({ path: ["ports", index, "number"], message: `port ${number} is listed twice` });
    names.add(name);
    numbers.add(number);
  });
}

function endpointPortsFit({ ports = [], endpoints = [] }: Spec, report: Report): void {
  const names = new Set(ports.map(({ name }) => name));
  endpoints.forEach((endpoint, index) => {
    for (const name of Object.keys(endpoint.ports ?? {})) {
      if (names.has(name)) continue;
      report({ path: ["endpoints", index, "ports", name], message: `no port of the entry is named ${quote(name)}` });
    }
  });
}

function resolutionFits(spec: Spec, report: Report): void {
  const { resolution = "NONE", hosts, addresses = [], endpoints = [], workloadSelector } = spec;
  const isDns = resolution === "DNS" || resolution === "DNS_ROUND_ROBIN";
  if (workloadSelector !== undefined && spec.endpoints !== undefined)
    report({ path: ["workloadSelector"], message: "an entry has endpoints or a workloadSelector, not both" });
  if (resolution === "NONE" && endpoints.length > 0)
    report({ path: ["endpoints"], message: "with the resolution NONE, its default, there are no endpoints to write" });
  if (resolution === "DYNAMIC_DNS" && endpoints.length > 0)
    report({ path: ["endpoints"], message: "with DYNAMIC_DNS the host itself is looked up: there are no endpoints" });
  if (resolution === "DNS_ROUND_ROBIN" && endpoints.length > 1)
    report({ path: ["endpoints"], message: "DNS_ROUND_ROBIN takes one endpoint at most", suggestion: "Write DNS." });
  endpoints.forEach(({ address = "" }, index) => {
    if (resolution !== "STATIC" || address === "" || isAddress(address) || address.startsWith("unix://")) return;
    const message = `${quote(address)} is not an IP address`;
    report({ path: ["endpoints", index, "address"], message, suggestion: "Write `resolution: DNS` for names." });
  });
  hosts.forEach((host, index) => {
    if (!isDns || endpoints.length > 0 || hostName.check(host) === undefined) return;
    const message = `${quote(host)} cannot be looked up, and there are no endpoints`;
    report({ path: ["hosts", index], message, suggestion: "Write endpoints, or hosts without a wildcard." });
  });
  if (isDns && addresses.some((address) => address.includes("/")))
    report({ path: ["addresses"], message: "ranges of addresses are for the resolutions NONE and STATIC" });
}

/** By the bytes of another protocol nobody can tell which host is meant. */
function hostsAreTold({ resolution = "NONE", hosts, ports = [] }: Spec, report: Report): void {
  if (resolution === "NONE" || hosts.length < 2) return;
  const index = ports.findIndex((each) => {
    const spoken = entryProtocol(each.protocol ?? "");
    return spoken === "auto" || !(isHttp(spoken ?? "tcp") || spoken === "https" || spoken === "tls");
  });
  if (index === -1) return;
  const message = "several hosts can be told apart by requests and by TLS alone, and this port speaks neither";
  report({ path: ["ports", index], message, suggestion: "Write an entry for each host." });
}

/** What Istio does and nothing here does yet, and what is odd. */
function honoured(spec: Spec, report: Report): void {
  const { resolution = "NONE", workloadSelector } = spec;
  if (workloadSelector !== undefined && resolution !== "STATIC") {
    report({
      code: "TUL0001",
      severity: "error",
      path: ["workloadSelector"],
      message: `a workloadSelector with the resolution ${resolution} is not implemented yet: the entry would lead elsewhere`,
      suggestion: "Write `resolution: STATIC`.",
    });
  }
  if (workloadSelector !== undefined && Object.keys(workloadSelector.labels ?? {}).length === 0) {
    report({
      path: ["workloadSelector"],
      code: "IST0133",
      message: "without labels it chooses no workload: no WorkloadEntry and no pod is an endpoint",
      suggestion: "Write the labels of its workloads.",
    });
  }
}

export const serviceEntry = defineKind({
  kind: "ServiceEntry",
  plural: "serviceentries",
  shortNames: ["se"],
  apiVersions: networkingApiVersions,
  scope: "Namespaced",
  affects: "routing",
  writtenBy: "user",
  unknownField: "error",
  description: "Hosts that are no Service of the cluster, as if they were.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: required(
        object(entryFields, {
          rules: [exportsFit, portsDiffer, endpointPortsFit, resolutionFits, hostsAreTold, honoured],
        }),
        "The entry.",
      ),
    },
    { unread: ["status"], rules: [noDryRun] },
  ),
});
