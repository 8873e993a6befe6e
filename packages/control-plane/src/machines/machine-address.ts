// Where a machine may say that it is reached: where its calls come from, or what its token allows, and nowhere that is
// somebody else's. Traffic of the mesh goes there.
import { BlockList, isIP, isIPv6, SocketAddress } from "node:net";
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

/** Of `10.0.0.5:4711` or `[fd00::5]:4711`, as gRPC gives a peer. */
export function peerAddress(peer: string): string {
  return plainAddress(peer.slice(0, peer.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1"));
}

/** The one way to write an address (RFC 5952), without a zone; IPv4 within IPv6 is IPv4. What is none stays. */
export function plainAddress(address: string): string {
  if (!isIPv6(address)) return address;
  const written = new SocketAddress({ address: address.replace(/%.*$/, ""), family: "ipv6" }).address;
  return written.replace(/^::ffff:(?=\d+\.)/, "");
}

export interface ClaimedAddress {
  readonly address: string;
  /** Where the call comes from. */
  readonly peer: string;
  /** The token's: addresses, and ranges of them. */
  readonly allowed: readonly string[];
}

/** Why it may not be the machine's, whoever else there is. */
export function addressProblem({ address, peer, allowed }: ClaimedAddress): string | undefined {
  if (isIP(address) === 0) return `${JSON.stringify(address)} is no IP address`;
  const isUnreachable = unreachable.check(address, isIPv6(address) ? "ipv6" : "ipv4");
  const named = isUnreachable ? allowed.filter((each) => !each.includes("/")) : allowed;
  if (isWithin(address, named)) return undefined;
  if (allowed.length > 0) return `the token is for a machine at ${allowed.join(" or ")}, not at ${address}`;
  if (isUnreachable) return `${address} is no address that others reach: name the machine's own when the token is made`;
  return address === peer
    ? undefined
    : `the machine calls from ${peer}, so it cannot say that it is at ${address}: name that when the token is made`;
}

/** Whether it is an address, or a range such as `10.9.0.0/24`. */
export function isAddressOrRange(text: string): boolean {
  const [address = "", length] = text.split("/", 2);
  const family = isIP(address);
  if (family === 0 || text.split("/").length > 2) return false;
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= (family === 6 ? 128 : 32));
}

/** Addresses are compared as such, not as they are written. */
function isWithin(address: string, allowed: readonly string[]): boolean {
  const list = new BlockList();
  for (const each of allowed) {
    const [start = "", length] = each.split("/", 2);
    const at = new SocketAddress({ address: start, family: isIPv6(start) ? "ipv6" : "ipv4" });
    if (length === undefined) list.addAddress(at);
    else list.addSubnet(at, Number(length));
  }
  return list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

/** Who has the plain address, however it is written there; `ownEntry` is the machine's own, by `namespace/name`. */
export function addressHolder(
  store: Pick<Store, "list">,
  address: string,
  network: string,
  ownEntry: string,
): string | undefined {
  const isIt = (other = ""): boolean => other === address || plainAddress(other) === address;
  for (const { metadata, spec } of store.list("WorkloadEntry")) {
    const name = `${metadata.namespace}/${metadata.name}`;
    if (name === ownEntry || !isIt(spec.address) || (spec.network ?? "") !== network) continue;
    return `the WorkloadEntry ${metadata.name}.${metadata.namespace}`;
  }
  // What is no machine lies in the mesh's own network.
  if (network !== "") return undefined;
  for (const { metadata, status } of store.list("Pod")) {
    const ips = [status?.podIP, ...(status?.podIPs ?? []).map(({ ip }) => ip)];
    if (ips.some((ip) => isIt(ip))) return `the pod ${metadata.name}.${metadata.namespace}`;
  }
  for (const { metadata, spec } of store.list("Service")) {
    if ([spec.clusterIP, ...(spec.clusterIPs ?? [])].some((ip) => isIt(ip)))
      return `the Service ${metadata.name}.${metadata.namespace}`;
  }
  const slice = store
    .list("EndpointSlice")
    .find(({ endpoints }) => endpoints.some(({ addresses }) => addresses.some((ip) => isIt(ip))));
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
