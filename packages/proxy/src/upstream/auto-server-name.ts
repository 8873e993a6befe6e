// The server name that TLS takes from a request (UpstreamHttpProtocolOptions.auto_sni).
import { isIP } from "node:net";

/** The authority's host; undefined for an address, which is no server name (RFC 6066 §3). */
export function serverNameOf(authority: string): string | undefined {
  const name = authority.replace(/:\d*$/, "").toLowerCase();
  return name === "" || name.startsWith("[") || isIP(name) !== 0 ? undefined : name;
}
