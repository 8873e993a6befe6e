// Whether an address is one of this machine's.
import { networkInterfaces } from "node:os";

/**
 * As the process's network namespace has them now; an interface shows only the first of loopback. `ip` as the kernel
 * writes it, none that stands for all addresses.
 */
export function isOwnAddress(ip: string): boolean {
  if (ip.startsWith("127.") || ip === "::1") return true;
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === ip));
}
