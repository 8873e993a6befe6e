// Keeps pages of a browser on this machine away from the admin interface: those of another site by their Origin, and
// those whose owner has pointed a name of his own here (DNS rebinding) by the Host that they then send.
import { isIP } from "node:net";

/** Undefined when the request may come from a tool or a page of our own; else what to answer. */
export function foreignPageFault(headers: {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
}): string | undefined {
  const { host, origin } = headers;
  if (host !== undefined && !isOurHost(host)) {
    return "the Host must be an IP address, localhost or a name without dots\n";
  }
  if (origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host)) {
    return "requests from pages of another origin are refused\n";
  }
  return undefined;
}

// A name without dots is one of this network's: nobody elsewhere can own it.
function isOurHost(host: string): boolean {
  if (host === "") return true;
  if (!URL.canParse(`http://${host}`)) return false;
  const name = new URL(`http://${host}`).hostname.replace(/^\[(.*)\]$/, "$1");
  return isIP(name) !== 0 || !name.includes(".") || name.endsWith(".localhost");
}
