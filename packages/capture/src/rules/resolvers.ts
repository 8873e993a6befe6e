// The name servers that programs of this machine ask, by resolv.conf(5).
import { parseIpRange } from "./ip-range.ts";

/** An address with a zone (`fe80::1%eth0`) is left out: no rule can name it. */
export function nameserversOf(resolvConf: string): readonly string[] {
  return resolvConf.split("\n").flatMap((line) => {
    const address = /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? "";
    return parseIpRange(address)?.address.length === undefined || address.includes("/") ? [] : [address];
  });
}
