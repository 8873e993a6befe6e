// Whether a connection that this machine begins comes to a socket of this proxy.
import { isIPv4, isIPv6 } from "node:net";
import { isOwnAddress } from "@tulle/capture";
import { unmappedIp } from "../http/canonical-ip.ts";
import type { ListenAddress } from "./listener.ts";

/** Where a connection to no address in particular goes (Linux). */
const loopbackOf: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** Whether a connection to `ip`, in its canonical form, comes to a socket that listens at `own`. */
export function reaches(ip: string, port: number, own: ListenAddress): boolean {
  if (port !== own.port) return false;
  const unmapped = unmappedIp(ip);
  const target = loopbackOf[unmapped] ?? unmapped;
  if (own.ip === "0.0.0.0") return isIPv4(target) && isOwnAddress(target);
  if (own.ip === "::") return (isIPv6(target) || own.takesIpv4 === true) && isOwnAddress(target);
  return own.ip === target;
}
