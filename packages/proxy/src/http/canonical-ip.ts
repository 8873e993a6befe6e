// One text for each address: configuration, certificates and peers may write one of IPv6 in many ways.
import { isIPv6, SocketAddress } from "node:net";

/** As the kernel writes it (RFC 5952), such as `2001:db8::1` and `::ffff:10.0.0.1`; without the zone of a link. */
export function canonicalIp(ip: string): string {
  return isIPv6(ip) ? new SocketAddress({ address: ip, family: "ipv6" }).address : ip;
}

/** An IPv4 address that a socket of IPv6 shows as `::ffff:10.0.0.1`, without that prefix; others as they are. */
export function unmappedIp(ip: string): string {
  return ip.startsWith("::ffff:") && ip.includes(".") ? ip.slice(7) : ip;
}
