// The address a request comes from. `X-Forwarded-For` is believed only as far as configured proxies have written it.
import { BlockList, isIP } from "node:net";

/**
 * The network that an address stands for where attempts are counted: an IPv6 host has a /64 of addresses to itself
 * (RFC 4291 §2.5.1), an IPv4 host one.
 */
export function networkOf(address: string): string {
  return prefixOf(address, 4);
}

/** Where many stand in line: a customer has up to a /48 of such networks (RFC 6177 §2), and is one all the same. */
export function siteOf(address: string): string {
  return prefixOf(address, 3);
}

/** An IPv4 address stands for itself. */
function prefixOf(address: string, groupCount: number): string {
  if (isIP(address) !== 6) return address;
  const [head = "", tail] = address.split("%", 1)[0]!.split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  // An IPv4 address at the end stands for two groups, which are beyond the first four.
  const groups = after.length + (after.at(-1)?.includes(".") === true ? 1 : 0);
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - groups);
  const all = [...before, ...Array.from({ length: zeros }, () => "0"), ...after];
  return `${all
    .slice(0, groupCount)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/${groupCount * 16}`;
}

export type AddressReader = (peer: string, forwardedFor: string | undefined) => string;

/** `ranges` are addresses or CIDR ranges; a mistake among them is thrown, at start. */
export function addressReader(ranges: readonly string[]): AddressReader {
  const trusted = new BlockList();
  for (const range of ranges) {
    const [address, prefix] = range.split("/") as [string, string | undefined];
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (isIP(address) === 0) throw new Error(`trusted-proxies: "${range}" is no address and no CIDR range`);
    if (prefix === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(prefix), family);
  }
  const isTrusted = (address: string): boolean => {
    const family = isIP(address);
    return family !== 0 && trusted.check(address, family === 6 ? "ipv6" : "ipv4");
  };
  return (peer, forwardedFor) => {
    let address = peer.replace(/^::ffff:/, "");
    if (forwardedFor === undefined || ranges.length === 0) return address;
    const hops = forwardedFor.split(",").map((hop) => hop.trim());
    // From the nearest hop outwards: the first one that is not ours is the client, and what it wrote before is hearsay.
    while (isTrusted(address) && hops.length > 0) {
      const next = hops.pop()!;
      if (isIP(next) === 0) break;
      address = next;
    }
    return address;
  };
}
