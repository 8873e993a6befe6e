// Ranges of addresses as people write them (`10.96.0.0/12`, `fd00::/8`, one address) and as nft takes them in a set,
// where no two may overlap.
import { addressBytes, plainAddressText } from "../ip-address.ts";

export interface IpRange {
  readonly family: 4 | 6;
  /** Its first address: the bits behind the prefix are zero. */
  readonly address: Uint8Array;
  readonly prefixBits: number;
}

/** Undefined for what is no address and no range. Bits behind the prefix are dropped, as Istio drops them. */
export function parseIpRange(text: string): IpRange | undefined {
  const [ip = "", prefix, ...rest] = text.split("/");
  const address = addressBytes(ip);
  // `::ffff:10.0.0.0/104` would be an IPv4 range with a prefix of IPv6.
  const isMapped = address?.length === 4 && ip.includes(":");
  if (address === undefined || isMapped || rest.length > 0) return undefined;
  const maximum = address.length * 8;
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= maximum)) return undefined;
  const prefixBits = prefix === undefined ? maximum : Number(prefix);
  return { family: address.length === 4 ? 4 : 6, address: masked(address, prefixBits), prefixBits };
}

/** As nft takes it: without brackets, and without a prefix for one address. */
export function rangeText({ address, prefixBits }: IpRange): string {
  const text = plainAddressText(address);
  return prefixBits === address.length * 8 ? text : `${text}/${prefixBits}`;
}

/** Those that lie in no other one. Two ranges with prefixes are apart, or one holds the other. */
export function withoutOverlaps(ranges: readonly IpRange[]): readonly IpRange[] {
  const unique = [...new Map(ranges.map((range) => [rangeText(range), range])).values()];
  return unique.filter((range) => !unique.some((other) => other !== range && holds(other, range)));
}

export function holds(outer: IpRange, inner: IpRange): boolean {
  if (outer.family !== inner.family || outer.prefixBits > inner.prefixBits) return false;
  return masked(inner.address, outer.prefixBits).every((byte, index) => byte === outer.address[index]);
}

function masked(address: Uint8Array, prefixBits: number): Uint8Array {
  return address.map((byte, index) => {
    const kept = Math.min(Math.max(prefixBits - index * 8, 0), 8);
    return byte & (0xff << (8 - kept));
  });
}
