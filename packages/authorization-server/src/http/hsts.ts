// RFC 6797: browsers that have seen the server by https come back by https alone. The rule holds for a host with all
// its ports, so it is given only where the host is the server's to speak for.

const maxAgeSeconds = 365 * 86_400;

/**
 * Undefined for http, for an address or name of a machine itself (browsers keep no rule for addresses, and `localhost`
 * is every developer's), and for a port of its own: what else the host serves by http would be lost. Hosts below are
 * left alone.
 */
export function hstsHeader(issuer: string): string | undefined {
  const { protocol, hostname, port } = new URL(issuer);
  const isAddress = hostname.startsWith("[") || /^[\d.]+$/.test(hostname);
  const isLocal = hostname === "localhost" || hostname.endsWith(".localhost");
  if (protocol !== "https:" || port !== "" || isAddress || isLocal) return undefined;
  return `max-age=${maxAgeSeconds}`;
}
