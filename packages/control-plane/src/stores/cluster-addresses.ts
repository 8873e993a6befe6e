// What an API server of Kubernetes gives a Service that does not name it itself: an address of the cluster, and ports
// of the nodes. Wanted where something leads there, as in pods that have networks of their own.
import type { MeshResource, Service } from "@tulle/config";

/** kube-apiserver's `--service-cluster-ip-range` for IPv4. */
export interface ClusterRange {
  /** The first address as a number. */
  readonly first: number;
  readonly size: number;
}

/** kube-apiserver's `--service-node-port-range`. */
const nodePorts = { first: 30_000, size: 2768 };
/** The network's own, the first one (an API server's), and those that installers give to DNS. */
const keptBack = 16;

/** `10.96.0.0/16`, of 12 to 24 bits; undefined for anything else. */
export function parseClusterRange(text: string): ClusterRange | undefined {
  const [, address = "", bits = ""] = /^(\d+(?:\.\d+){3})\/(\d{2})$/.exec(text) ?? [];
  const parts = address.split(".").map(Number);
  const prefix = Number(bits);
  if (parts.length !== 4 || parts.some((part) => part > 255) || prefix < 12 || prefix > 24) return undefined;
  const number = parts.reduce((sum, part) => sum * 256 + part, 0);
  const size = 2 ** (32 - prefix);
  return { first: number - (number % size), size };
}

/**
 * The resource with what it lacks. `previous` is what stood in its place: its address stays. `services` are all others.
 * What is taken is tried from where the name leads to, so that a Service has the same address after a restart.
 */
export function withClusterAddresses(
  resource: MeshResource,
  previous: MeshResource | undefined,
  services: readonly Service[],
  range: ClusterRange,
): MeshResource {
  if (resource.kind !== "Service" || resource.spec.type === "ExternalName") return resource;
  const before = previous?.kind === "Service" ? previous : undefined;
  const others = services.filter((each) => each !== before);
  const spec = withNodePorts(withAddress(resource, before, others, range), before, others);
  return spec === resource.spec ? resource : { ...resource, spec };
}

/** Who else has an address or a port of nodes that the resource names, in words; an API server refuses it then. */
export function takenAlready(resource: MeshResource, services: readonly Service[]): string | undefined {
  if (resource.kind !== "Service" || resource.spec.type === "ExternalName") return undefined;
  const { metadata, spec } = resource;
  const addresses = new Set(addressesOf(spec).filter((address) => address !== "None"));
  const ports = new Set(hasNodePorts(spec) ? nodePortsOf(spec) : []);
  for (const other of services) {
    if (nameOf(other.metadata) === nameOf(metadata)) continue;
    const address = addressesOf(other.spec).find((each) => addresses.has(each));
    const port = hasNodePorts(other.spec) ? nodePortsOf(other.spec).find((each) => ports.has(each)) : undefined;
    const what = address ?? (port === undefined ? undefined : `the node port ${port}`);
    if (what !== undefined) return `${what} is the Service ${nameOf(other.metadata)}'s already`;
  }
  return undefined;
}

function withAddress(
  { metadata, spec }: Service,
  before: Service | undefined,
  others: readonly Service[],
  range: ClusterRange,
): Service["spec"] {
  if (addressesOf(spec).length > 0) return spec;
  const taken = new Set(others.flatMap((each) => addressesOf(each.spec)));
  const kept = before && addressesOf(before.spec)[0];
  const clusterIP =
    kept !== undefined && kept !== "None" && !taken.has(kept)
      ? kept
      : freeIn({ first: range.first + keptBack, size: range.size - keptBack - 1 }, nameOf(metadata), (number) =>
          taken.has(addressText(number)) ? undefined : addressText(number),
        );
  return clusterIP === undefined ? spec : { ...spec, clusterIP, clusterIPs: [clusterIP] };
}

function withNodePorts(
  spec: Service["spec"],
  before: Service | undefined,
  others: readonly Service[],
): Service["spec"] {
  if (!hasNodePorts(spec)) return spec;
  if (spec.ports.every(({ nodePort = 0 }) => nodePort !== 0)) return spec;
  const taken = new Set([...others.flatMap((each) => nodePortsOf(each.spec)), ...nodePortsOf(spec)]);
  const ports = spec.ports.map((port) => {
    if ((port.nodePort ?? 0) !== 0) return port;
    const kept = before?.spec.ports.find((each) => each.port === port.port && each.protocol === port.protocol);
    const free = (number: number): number | undefined => (taken.has(number) ? undefined : number);
    const nodePort = (kept?.nodePort && free(kept.nodePort)) || freeIn(nodePorts, String(port.port), free);
    if (nodePort === undefined) return port;
    taken.add(nodePort);
    return { ...port, nodePort };
  });
  return { ...spec, ports };
}

function nodePortsOf({ ports }: Service["spec"]): readonly number[] {
  return ports.flatMap(({ nodePort = 0 }) => (nodePort === 0 ? [] : [nodePort]));
}

function hasNodePorts({ type }: Service["spec"]): boolean {
  return type === "NodePort" || type === "LoadBalancer";
}

/** `None` of a headless Service too. */
function addressesOf({ clusterIP, clusterIPs }: Service["spec"]): readonly string[] {
  return (clusterIPs ?? [clusterIP ?? ""]).filter((address) => address !== "");
}

function nameOf({ namespace, name }: Service["metadata"]): string {
  return `${namespace}/${name}`;
}

function freeIn<T>(
  { first, size }: ClusterRange,
  name: string,
  free: (number: number) => T | undefined,
): T | undefined {
  const start = hash(name) % size;
  for (let step = 0; step < size; step += 1) {
    const found = free(first + ((start + step) % size));
    if (found !== undefined) return found;
  }
  return undefined;
}

function addressText(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
}

/** FNV-1a of 32 bits. */
function hash(text: string): number {
  let value = 0x81_1c_9d_c5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01_00_01_93);
  return value >>> 0;
}
