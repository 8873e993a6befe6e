// Fetch metadata (W3C Fetch Metadata Request Headers): what kind of request a browser says it makes. Programs that are
// no browsers send none of it, and need none.
import type { IncomingHttpHeaders } from "node:http";

/** A navigation of a whole window, or a program that says nothing. */
export function isDocumentRequest(headers: IncomingHttpHeaders): boolean {
  const destination = headers["sec-fetch-dest"];
  return destination === undefined || destination === "document";
}

/**
 * A form of ours: `Origin` is the issuer's, or `null` as our own `no-referrer` makes it, which needs the browser's word
 * that it came from here. The CSRF token is checked besides.
 */
export function isOwnForm(headers: IncomingHttpHeaders, issuerOrigin: string): boolean {
  const { origin } = headers;
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin") return false;
  if (origin === undefined || origin === issuerOrigin) return true;
  return origin === "null" && site === "same-origin";
}
