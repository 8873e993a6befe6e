// Address ranges (config.core.v3.CidrRange, xds.core.v3.CidrRange).
import { BlockList, isIP } from "node:net";
import type { Place, Problems } from "./problems.ts";

export interface CompiledCidr {
  readonly prefixLength: number;
  contains(ip: string): boolean;
}

type CidrRange = Readonly<{ addressPrefix: string; prefixLen?: number | undefined }>;

export function compileCidr(range: CidrRange, place: Place, problems: Problems): CompiledCidr {
  const version = isIP(range.addressPrefix);
  const prefixLength = range.prefixLen ?? 0;
  if (version === 0) {
    problems.error(place.field("address_prefix"), `malformed IP address: ${range.addressPrefix}`);
    return { prefixLength: 0, contains: () => false };
  }
  if (prefixLength > (version === 4 ? 32 : 128)) {
    problems.error(place.field("prefix_len"), `${prefixLength} is longer than the address`);
    return { prefixLength: 0, contains: () => false };
  }
  const family = version === 4 ? "ipv4" : "ipv6";
  const list = new BlockList();
  list.addSubnet(range.addressPrefix, prefixLength, family);
  return {
    prefixLength,
    // BlockList would also find an IPv4 address in an IPv6 range that maps it, which Envoy keeps apart.
    contains: (ip) => isIP(ip) === version && list.check(ip, family),
  };
}
