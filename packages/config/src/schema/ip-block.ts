/** Address ranges as policies write them: an address alone, or with a prefix length (RFC 4632 §3.1). */
import { isIP } from "node:net";

export interface IpBlock {
  readonly address: string;
  readonly prefixLength: number;
}

/** The parts of `text`; an address alone is a range of one. Undefined when it is neither. */
export function splitIpBlock(text: string): IpBlock | undefined {
  const slash = text.indexOf("/");
  const address = slash === -1 ? text : text.slice(0, slash);
  const family = isIP(address);
  if (family === 0 || address.includes("%")) return undefined;
  const bits = family === 4 ? 32 : 128;
  if (slash === -1) return { address, prefixLength: bits };
  const length = text.slice(slash + 1);
  if (!/^(0|[1-9]\d{0,2})$/.test(length) || Number(length) > bits) return undefined;
  return { address, prefixLength: Number(length) };
}

/** Whether it is one address, written with a length or without. */
export function isSingleAddress({ address, prefixLength }: IpBlock): boolean {
  return prefixLength === (address.includes(":") ? 128 : 32);
}

export function isIpBlock(text: string): boolean {
  return splitIpBlock(text) !== undefined;
}

/** The range by its lowest address, as `10.0.0.0/8`, so that equal ranges have one text; undefined for what is none. */
export function rangeText(text: string): string | undefined {
  const block = splitIpBlock(text);
  if (block === undefined) return undefined;
  const { address, prefixLength } = block;
  const isIpv6 = address.includes(":");
  const bits = isIpv6 ? 128n : 32n;
  const below = bits - BigInt(prefixLength);
  const lowest = ((isIpv6 ? ipv6Number(address) : ipv4Number(address)) >> below) << below;
  return `${isIpv6 ? ipv6Text(lowest) : ipv4Text(lowest)}/${prefixLength}`;
}

function ipv4Number(address: string): bigint {
  return address.split(".").reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
}

function ipv4Text(number: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 255n).join(".");
}

function ipv6Number(address: string): bigint {
  // The URL standard's parser writes each address in one way (RFC 5952), an IPv4 address at its end as two groups.
  const [before = "", after] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (part: string): readonly string[] => (part === "" ? [] : part.split(":"));
  const [head, tail] = [groups(before), groups(after ?? "")];
  const middle = Array<string>(8 - head.length - tail.length).fill("0");
  return [...head, ...middle, ...tail].reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
}

function ipv6Text(number: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) => (number >> BigInt(112 - index * 16)) & 65_535n);
  return new URL(`http://[${groups.map((each) => each.toString(16)).join(":")}]`).hostname.slice(1, -1);
}
