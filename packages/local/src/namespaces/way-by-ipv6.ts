// Whether a network has a way to the world by IPv6: without one, pods call names of both families by IPv4.
import { readFileSync } from "node:fs";

/** Whether the network that this thread is in has a way to any host by IPv6, not to some alone. */
export function hasWayByIpv6(): boolean {
  const routes = readFileSync("/proc/thread-self/net/ipv6_route", "utf8").split("\n");
  return routes.some((line) => {
    const [destination = "", prefixLength = "", ...more] = line.trim().split(/\s+/);
    const [flags = "", device = ""] = more.slice(-2);
    return /^0{32}$/.test(destination) && prefixLength === "00" && device !== "lo" && isUp(parseInt(flags, 16));
  });
}

/** RTF_UP, and not RTF_REJECT (linux/route.h). */
function isUp(flags: number): boolean {
  return (flags & 0x1) !== 0 && (flags & 0x2_00) === 0;
}
