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
