// Keeps web pages out of the API: a browser will carry a page's request to a loopback address, under the page's own
// origin, or under a host name that the page's owner has pointed there (DNS rebinding).
import type { IncomingHttpHeaders } from "node:http";
import { BlockList } from "node:net";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/**
 * Whether Host and Origin, where they are, name this machine: `localhost`, a loopback address, or the address that the
 * server listens on.
 */
export function isLocalRequest(headers: IncomingHttpHeaders, ownHost: string): boolean {
  if (headers.host === undefined || !isLocalHost(`http://${headers.host}`, ownHost)) return false;
  return isLocalOrigin(headers, ownHost);
}

/** The same of Origin alone, for ways in on which another proof than the host's name is asked for. */
export function isLocalOrigin(headers: IncomingHttpHeaders, ownHost: string): boolean {
  if (headers["sec-fetch-site"] === "cross-site") return false;
  return headers.origin === undefined || isLocalHost(headers.origin, ownHost);
}

function isLocalHost(url: string, ownHost: string): boolean {
  if (!URL.canParse(url)) return false;
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  if (host === "localhost" || host === ownHost) return true;
  return loopback.check(host, host.includes(":") ? "ipv6" : "ipv4");
}
