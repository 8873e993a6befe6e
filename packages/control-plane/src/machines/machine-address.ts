// Where a machine may say that it is reached: where its calls come from, or what its token allows, and nowhere that is
// somebody else's. Traffic of the mesh goes there.
import { BlockList, isIP, isIPv6 } from "node:net";
import type { Store } from "@tulle/config";

const unreachable = new BlockList();
unreachable.addSubnet("0.0.0.0", 8);
unreachable.addSubnet("127.0.0.0", 8);
unreachable.addSubnet("169.254.0.0", 16);
unreachable.addSubnet("224.0.0.0", 3);
for (const [network, length] of [
  ["::", 127],
  ["fe80::", 10],
  ["ff00::", 8],
] as const) {
  unreachable.addSubnet(network, length, "ipv6");
}

/** Of `10.0.0.5:4711` or `[fd00::5]:4711`, as gRPC gives a peer; IPv4 that came over IPv6 is IPv4. */
export function peerAddress(peer: string): string {
  const host = peer.slice(0, peer.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
  return host.replace(/^::ffff:(?=\d+\.)/i, "");
}

export interface ClaimedAddress {
  readonly address: string;
  /** Where the call comes from. */
  readonly peer: string;
  /** The token's. */
  readonly allowed: readonly string[];
}

/** Why it may not be the machine's, whoever else there is. */
export function addressProblem({ address, peer, allowed }: ClaimedAddress): string | undefined {
  if (isIP(address) === 0) return `${JSON.stringify(address)} is no IP address`;
  if (allowed.includes(address)) return undefined;
  if (allowed.length > 0) return `the token is for a machine at ${allowed.join(" or ")}, not at ${address}`;
  if (unreachable.check(address, isIPv6(address) ? "ipv6" : "ipv4"))
    return `${address} is no address that others reach: name the machine's own when the token is made`;
  return address === peer
    ? undefined
    : `the machine calls from ${peer}, so it cannot say that it is at ${address}: name that when the token is made`;
}

/** Who has the address already; `ownEntry` is the machine's own, by `namespace/name`. */
export function addressHolder(
  store: Pick<Store, "list">,
  address: string,
  network: string,
  ownEntry: string,
): string | undefined {
  for (const { metadata, spec } of store.list("WorkloadEntry")) {
    const name = `${metadata.namespace}/${metadata.name}`;
    if (name === ownEntry || spec.address !== address || (spec.network ?? "") !== network) continue;
    return `the WorkloadEntry ${metadata.name}.${metadata.namespace}`;
  }
  // What is no machine lies in the mesh's own network.
  if (network !== "") return undefined;
  for (const { metadata, status } of store.list("Pod")) {
    const ips = [status?.podIP, ...(status?.podIPs ?? []).map(({ ip }) => ip)];
    if (ips.includes(address)) return `the pod ${metadata.name}.${metadata.namespace}`;
  }
  for (const { metadata, spec } of store.list("Service")) {
    if (spec.clusterIP === address || spec.clusterIPs?.includes(address) === true)
      return `the Service ${metadata.name}.${metadata.namespace}`;
  }
  const slice = store
    .list("EndpointSlice")
    .find(({ endpoints }) => endpoints.some(({ addresses }) => addresses.includes(address)));
  return slice && `an endpoint of ${slice.metadata.name}.${slice.metadata.namespace}`;
}

/** Whom an address is counted for: a host of IPv6 has all addresses of its network. */
export function sourceOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);
  return [...groups, ...Array<string>(missing).fill("0"), ...(tail ?? "").split(":")].slice(0, 4).join(":");
}
