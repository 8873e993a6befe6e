/**
 * Host names of the mesh: which service a name in a resource means, which Gateway a reference means, and when one host
 * pattern covers another. Analysis and translation both ask here, so that they cannot disagree.
 */

/** DNS suffix of services; Istio's default, kept. */
export const clusterDomain = "cluster.local";

/** `catalog` in `shop` → `catalog.shop.svc.cluster.local`. */
export function serviceHost(name: string, namespace: string): string {
  return `${name}.${namespace}.svc.${clusterDomain}`;
}

/**
 * The full name of the host that a resource of `namespace` writes as `host`: `catalog` (in that namespace),
 * `catalog.shop`, `catalog.shop.svc` and `catalog.shop.svc.cluster.local` mean the same service. A name of two labels
 * could as well be a host on the internet, so it is the service only if `isService` knows that service (asked with the
 * full name). Everything else – wildcards, addresses, outside hosts – stays as it is, in lower case and without a
 * trailing dot.
 */
export function resolveHost(host: string, namespace: string, isService: (fullName: string) => boolean): string {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (name.includes("*") || name.includes(":") || name === "") return name;
  const labels = name.split(".");
  if (labels.length === 1) return serviceHost(name, namespace);
  if (labels.length === 2) {
    const asService = serviceHost(labels[0]!, labels[1]!);
    return isService(asService) ? asService : name;
  }
  return labels.length === 3 && labels[2] === "svc" ? `${name}.${clusterDomain}` : name;
}

/** Name and namespace of the service that a full name names; undefined when it is none of the cluster. */
export function parseServiceHost(host: string): { readonly name: string; readonly namespace: string } | undefined {
  const suffix = `.svc.${clusterDomain}`;
  if (!host.endsWith(suffix)) return undefined;
  const [name, namespace, ...rest] = host.slice(0, -suffix.length).split(".");
  return name === undefined || namespace === undefined || rest.length > 0 ? undefined : { name, namespace };
}

/**
 * What an entry of a VirtualService's `gateways` means: `mesh`, or the Gateway as `<namespace>/<name>`. A name with
 * dots is Istio's older spelling `<name>.<namespace>`.
 */
export function resolveGateway(reference: string, namespace: string): string {
  if (reference === "mesh") return "mesh";
  if (reference.startsWith("./")) return `${namespace}/${reference.slice(2)}`;
  if (reference.includes("/")) return reference;
  const [name = "", otherNamespace] = reference.split(".");
  return `${otherNamespace ?? namespace}/${name}`;
}

/** Whether every name that `host` stands for is one that `pattern` stands for. Both may be wildcards. */
export function hostCovers(pattern: string, host: string): boolean {
  if (pattern === "*" || pattern === host) return true;
  if (!pattern.startsWith("*")) return false;
  return host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1;
}

/** Whether some name is one of both. */
export function hostsOverlap(a: string, b: string): boolean {
  return hostCovers(a, b) || hostCovers(b, a);
}
