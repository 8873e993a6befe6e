// The string formats that resources use, each checked as Istio and Kubernetes check it. A format says in a sentence
// what is wrong with a value; the caller adds the field and the place.
import { isIP } from "node:net";
import { RE2JS } from "re2js";
import { parseDuration } from "./duration.ts";

export interface Format {
  readonly name: string;
  /** What a reader of the docs and of the CRDs is told. */
  readonly description: string;
  /** What is wrong with `value`; undefined when it is fine. */
  readonly check: (value: string) => string | undefined;
  /** What is odd about a value that is taken all the same, as Istio takes it. */
  readonly warn?: (value: string) => string | undefined;
  /** The JSON Schema keywords that say (a part of) the same. */
  readonly jsonSchema?: Readonly<Record<string, unknown>>;
}

const dnsLabelPattern = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const dnsLabelExpression = new RegExp(`^${dnsLabelPattern}$`);
const dnsSubdomainExpression = new RegExp(`^${dnsLabelPattern}(\\.${dnsLabelPattern})*$`);

/** RFC 1123 label: names of namespaces, services, ports. */
export const dnsLabel: Format = {
  name: "DNS label",
  description: 'at most 63 lower-case letters, digits and "-", beginning and ending with a letter or digit',
  check: (value) =>
    value.length <= 63 && dnsLabelExpression.test(value) ? undefined : `${quote(value)} is not a ${describe(dnsLabel)}`,
  jsonSchema: { maxLength: 63, pattern: `^${dnsLabelPattern}$` },
};

/** The namespace of an object; empty stands for none, as in the API of Kubernetes. */
export const namespaceName: Format = {
  name: "namespace",
  description: "the name of a namespace",
  check: (value) => (value === "" ? undefined : dnsLabel.check(value)),
  jsonSchema: { maxLength: 63 },
};

/** An entry of `exportTo`: a namespace, `.` for the resource's own, `*` for all, `~` for none. */
export const exportedNamespace: Format = {
  name: "exported namespace",
  description: 'the name of a namespace, "." for the own one, "*" for all or "~" for none',
  check: (value) =>
    [".", "*", "~"].includes(value) || dnsLabel.check(value) === undefined
      ? undefined
      : `${quote(value)} is not ${exportedNamespace.description}`,
  jsonSchema: { minLength: 1, maxLength: 63 },
};

/** RFC 1123 subdomain: names of most objects. */
export const dnsSubdomain: Format = {
  name: "DNS name",
  description:
    'at most 253 characters; lower-case letters, digits, "-" and ".", each part beginning and ending with a letter or digit',
  check: (value) =>
    value.length <= 253 && dnsSubdomainExpression.test(value)
      ? undefined
      : `${quote(value)} is not a ${describe(dnsSubdomain)}`,
  jsonSchema: { maxLength: 253, pattern: `^${dnsLabelPattern}(\\.${dnsLabelPattern})*$` },
};

// Istio validates host names with labels that may hold upper-case letters (pkg/config/labels).
const hostLabel = /^[A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?$/;
const maxHostLength = 255;

function isHostLabel(label: string): boolean {
  return label.length <= 63 && hostLabel.test(label);
}

/** The last of several labels may be empty, and is no number: `10.0.0.1` is an address. */
function areHostLabels(labels: readonly string[]): boolean {
  const last = labels.at(-1)!;
  if (/^[-+]?\d+$/.test(last)) return false;
  return (last === "" ? labels.slice(0, -1) : labels).every(isHostLabel);
}

function isHostName(value: string): boolean {
  return value !== "" && value.length <= maxHostLength && areHostLabels(value.split("."));
}

/** The first label may be `*`, or begin with `*` or `*-` (Istio: IsWildcardDNS1123Label). */
function isWildcardHostName(value: string): boolean {
  if (value === "" || value.length > maxHostLength) return false;
  const [first = "", ...rest] = value.split(".");
  const isFirstFine = first === "*" || (first.length <= 63 && isHostLabel(first.replace(/^\*-?/, "")));
  return isFirstFine && (rest.length === 0 || areHostLabels(rest));
}

/** A DNS name of a service, without wildcard. */
export const hostName: Format = {
  name: "host name",
  description: 'a DNS name without wildcard: a short service name, or labels joined by "."',
  check: (value) => (isHostName(value) ? undefined : `${quote(value)} is not a ${describe(hostName)}`),
  jsonSchema: { minLength: 1, maxLength: 255 },
};

/** A DNS name that may begin with `*`. */
export const wildcardName: Format = {
  name: "host",
  description: 'a DNS name, a wildcard as "*.example.com" or "*-a.example.com", or "*"',
  check: (value) => {
    if (isWildcardHostName(value)) return undefined;
    if (value.slice(1).includes("*"))
      return `${quote(value)} has a wildcard that is not at its beginning (write "*.example.com")`;
    return `${quote(value)} is not a ${describe(wildcardName)}`;
  },
  jsonSchema: { minLength: 1, maxLength: maxHostLength },
};

/** The same, or an IP address. */
export const wildcardHost: Format = {
  ...wildcardName,
  description: `${wildcardName.description}; or an IP address`,
  check: (value) => (isIP(value) > 0 ? undefined : wildcardName.check(value)),
};

/** A server name, or the host of a VirtualService: also the name that proxies send through other networks' gateways. */
export const serverNameHost: Format = {
  ...wildcardHost,
  check: (value) => (/^outbound_\.\d+_\.[^_]*_\.[A-Za-z]/.test(value) ? undefined : wildcardHost.check(value)),
};

/** Where a tunnel ends: a name or an address. */
export const tunnelHost: Format = {
  ...hostName,
  check: (value) => (isIP(value) > 0 ? undefined : hostName.check(value)),
};

/** Of a service that requests go to. Istio takes wildcards other than `*`; none is the name of a service. */
export const destinationHost: Format = {
  ...wildcardName,
  description: hostName.description,
  check: (value) => (value === "*" ? hostName.check(value) : wildcardName.check(value)),
};

/** A host of a Gateway server: an optional namespace (`*`, `.` or a name), then a host, whose name is never short. */
export const gatewayHost: Format = {
  name: "gateway host",
  description: 'a host, or "<namespace>/<host>" where the namespace is a name, "*" or "."',
  check: (value) => {
    const slash = value.indexOf("/");
    const namespace = slash === -1 ? "*" : value.slice(0, slash);
    const host = value.slice(slash + 1);
    if (namespace !== "*" && namespace !== "." && !isHostLabel(namespace)) {
      return `${quote(value)} names the namespace ${quote(namespace)}, which is neither a name nor "*" nor "."`;
    }
    const wrong = wildcardHost.check(host);
    if (wrong !== undefined) return wrong;
    if (host !== "*" && !host.includes(".")) {
      return `${quote(value)} has no dot: a Gateway takes full names alone (for example "shop.example.com")`;
    }
    return host.startsWith("*") && host !== "*" && !host.startsWith("*.")
      ? `${quote(value)} has a wildcard that is not the whole first label (write "*.example.com")`
      : undefined;
  },
  jsonSchema: { minLength: 1 },
};

/**
 * A reference to a Gateway from a VirtualService: `mesh`, `<name>`, `<namespace>/<name>`, or `<name>.<namespace>` as of
 * old.
 */
export const gatewayReference: Format = {
  name: "gateway reference",
  description: '"mesh", the name of a Gateway, or "<namespace>/<name>"',
  check: (value) => {
    const parts = value.split("/");
    const [first = "", second = ""] = parts;
    if (parts.length > 2) return `${quote(value)} has more than one "/"`;
    if (parts.length === 1) return hostName.check(first);
    const wrong = [first, second].find((part) => !isHostLabel(part));
    return wrong === undefined ? undefined : `${quote(value)}: ${quote(wrong)} is not a ${describe(dnsLabel)}`;
  },
  jsonSchema: { minLength: 1 },
};

const podFieldPathPattern =
  "(metadata\\.(name|namespace|uid|(labels|annotations)\\['[^']+'\\])|spec\\.(nodeName|serviceAccountName)|status\\.(host|pod)IPs?)";
const podFieldPathExpression = new RegExp(`^${podFieldPathPattern}$`);

/** The fields of a pod that Kubernetes gives to environment variables. */
export const podFieldPath: Format = {
  name: "field of a pod",
  description:
    "metadata.name, namespace, uid, labels['<key>'] or annotations['<key>'], spec.nodeName or serviceAccountName, status.podIP, podIPs, hostIP or hostIPs",
  check: (value) =>
    podFieldPathExpression.test(value)
      ? undefined
      : `${quote(value)} is no field of a pod that a variable can have: ${podFieldPath.description}`,
  jsonSchema: { pattern: `^${podFieldPathPattern}$` },
};

const containerResourcePattern = "(limits|requests)\\.(cpu|memory|ephemeral-storage|hugepages-[0-9a-zA-Z]+)";
const containerResourceExpression = new RegExp(`^${containerResourcePattern}$`);

/** What of a container's resources Kubernetes gives to environment variables. */
export const containerResource: Format = {
  name: "resource of a container",
  description: "limits.cpu, limits.memory, limits.ephemeral-storage, limits.hugepages-<size>, or the same of requests",
  check: (value) =>
    containerResourceExpression.test(value)
      ? undefined
      : `${quote(value)} is no resource that a variable can have: ${containerResource.description}`,
  jsonSchema: { pattern: `^${containerResourcePattern}$` },
};

/** A duration of at least 1 ms, in Go's spelling. */
export const duration: Format = {
  name: "duration",
  description: 'a number with a unit, as "2s", "1.5h", "250ms" or "1m30s"; at least 1ms',
  check: (value) => {
    const milliseconds = parseDuration(value);
    if (milliseconds === undefined) return `${quote(value)} is not a ${describe(duration)}`;
    if (milliseconds < 1) return `${quote(value)} is shorter than 1ms, the shortest duration`;
    return Number.isInteger(milliseconds) ? undefined : `${quote(value)} is not a whole number of milliseconds`;
  },
  // By its form alone: a rule in CEL costs more in lists of lists than an API server allows a definition.
  jsonSchema: { pattern: String.raw`^\+?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$` },
};

/** A duration that may also be zero (`0s` switches the limit off). */
export const durationOrZero: Format = {
  name: "duration or zero",
  description: 'a duration as "2s", or "0s"',
  check: (value) => (parseDuration(value) === 0 ? undefined : duration.check(value)),
};

/** A regular expression in RE2's syntax, as Envoy matches it. */
export const regex: Format = {
  name: "regular expression",
  description: "RE2 syntax (no look-around, no back-references); the whole value has to match",
  check: (value) => {
    if (value === "") return "the regular expression is empty; Envoy takes none that is";
    // Envoy refuses programs above 100 by default, Istio lifts that and bounds the length of the text instead.
    if (value.length > 1024) return `the regular expression has ${value.length} characters, the limit is 1024`;
    try {
      RE2JS.compile(value);
      return undefined;
    } catch (error) {
      return `${quote(value)} is not a regular expression of RE2: ${error instanceof Error ? error.message : String(error)}`;
    }
  },
  jsonSchema: { maxLength: 1024 },
};

export const regexOrAny: Format = {
  ...regex,
  description: `${regex.description}; "*" stands for any value`,
  check: (value) => (value === "*" ? undefined : regex.check(value)),
};

const retryConditions: ReadonlySet<string> = new Set([
  "5xx",
  "gateway-error",
  "reset",
  "reset-before-request",
  "connect-failure",
  "retriable-4xx",
  "refused-stream",
  "retriable-status-codes",
  "retriable-headers",
  "envoy-ratelimited",
  "http3-post-connect-failure",
  "cancelled",
  "deadline-exceeded",
  "internal",
  "resource-exhausted",
  "unavailable",
]);

/**
 * Envoy's retry conditions joined by commas; a bare status code is one too (Istio turns it into
 * `retriable-status-codes`).
 */
export const retryOn: Format = {
  name: "retry conditions",
  description: `comma-separated: ${[...retryConditions].join(", ")}, or a status code`,
  check: (value) => {
    for (const token of value.split(",").map((part) => part.trim())) {
      if (token === "" || retryConditions.has(token)) continue;
      if (/^\d+$/.test(token)) {
        const status = Number(token);
        if (status >= 100 && status <= 599) continue;
        return `${quote(token)} is not an HTTP status code`;
      }
      return `${quote(token)} is not a retry condition; known are ${[...retryConditions].join(", ")} and status codes`;
    }
    return undefined;
  },
};

/** The name of a subset. */
export const subsetName: Format = {
  name: "subset",
  description: 'at most 63 letters, digits and "-", beginning and ending with a letter or digit',
  check: (value) => (isHostLabel(value) ? undefined : `${quote(value)} is not a ${describe(subsetName)}`),
  jsonSchema: { maxLength: 63 },
};

/** An HTTP header name of a match or of a header operation (RFC 9110 §5.1), or a pseudo-header. */
export const headerName: Format = {
  name: "header name",
  description: "an HTTP field name",
  check: (value) => {
    if (value === "") return "a header name may not be empty";
    return /^:?[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(value) ? undefined : `${quote(value)} is not a header name`;
  },
};

/** A header name of a match, which may also be a claim of the request's token: `@request.auth.claims.groups`. */
export const headerMatchName: Format = {
  name: "header name",
  description: "an HTTP field name",
  check: (value) => (isClaim(value) ? undefined : headerName.check(value)),
};

/** Whether a header's name means a claim of the request's token. */
export function isClaim(name: string): boolean {
  return routedClaim(name) !== undefined;
}

/** The claim of `@request.auth.claims.a.b` or `@request.auth.claims[a][b]`, outermost first; else undefined. */
export function routedClaim(name: string): readonly string[] | undefined {
  const [, points, brackets] = /^@request\.auth\.claims(?:((?:\.[^.]+)+)|((?:\[[^[\]]+\])+))$/.exec(name) ?? [];
  if (points !== undefined) return points.slice(1).split(".");
  return brackets?.slice(1, -1).split("][");
}

/** Envoy takes no other (QueryParameterMatcher.name). */
export const queryParameterName: Format = {
  name: "query parameter",
  description: "the name of a query parameter, of 1 to 1024 bytes",
  check: (value) =>
    value !== "" && Buffer.byteLength(value) <= 1024
      ? undefined
      : `${quote(value.slice(0, 40))} is not ${queryParameterName.description}`,
  jsonSchema: { minLength: 1, maxLength: 1024 },
};

/** The address of a Service: proxies match the Host header with it, so that it may be nothing else. */
export const clusterAddress: Format = {
  name: "cluster address",
  description: 'an IP address, or "None" for a headless Service',
  check: (value) =>
    value === "" || value === "None" || isIP(value) > 0
      ? undefined
      : `${quote(value)} is not a ${describe(clusterAddress)}`,
};

/** A value of a Secret. The message says nothing of it. */
export const base64: Format = {
  name: "base64",
  description: "base64 (RFC 4648 section 4)",
  check: (value) =>
    /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(value.replaceAll(/\s/g, ""))
      ? undefined
      : "the value is not base64; text without encoding belongs into stringData",
  jsonSchema: { format: "byte" },
};

/** A key of a Secret's data (Kubernetes: IsConfigMapKey). */
export const secretKey: Format = {
  name: "key",
  description: 'at most 253 letters, digits, "-", "_" and "."',
  check: (value) =>
    value.length <= 253 && /^[-._a-zA-Z0-9]+$/.test(value) && value !== "." && value !== ".."
      ? undefined
      : `${quote(value)} is not a ${describe(secretKey)}`,
};

/** A Secret named by a gateway: its name alone, since it lies in the namespace of the gateway's pods. */
export const secretName: Format = {
  name: "name of a Secret",
  description: "the name of a Secret in the namespace of the gateway's pods",
  check: () => undefined,
  warn: (value) => dnsSubdomain.check(value.replace(/^kubernetes:\/\//, "")),
};

/** Text that may not be empty. */
export const nonEmpty: Format = {
  name: "text",
  description: "not empty",
  check: (value) => (value === "" ? "may not be empty" : undefined),
  jsonSchema: { minLength: 1 },
};

export function quote(value: string): string {
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 77)}…` : value);
}

/** As messages name a format. */
export function describe(format: Format): string {
  return `${format.name} (${format.description})`;
}
