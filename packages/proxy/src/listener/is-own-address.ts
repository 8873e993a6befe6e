// Whether an address is one of this machine's, as its network namespace has them now.
import { isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";

export function isOwnAddress(ip: string): boolean {
  if (isIPv4(ip) ? ip.startsWith("127.") || ip === "0.0.0.0" : ip === "::1" || ip === "::") return true;
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === ip));
}
