// Requests for another host than the one that the connection was made for (RFC 9110 §15.5.20). A browser uses one
// connection of HTTP/2 for all hosts that it believes to be behind it; where the certificate that it was shown is not
// for such a host, it is told to make another connection.
import { matchesDnsName } from "../tls/peer-names.ts";
import type { TlsInfo } from "../tls/tls-info.ts";
import type { Refusal } from "./admit-request.ts";

export const misdirected: Refusal = { status: 421, body: "", details: "misdirected_request", endsStream: false };

export interface ConnectionNames {
  /** Of the ClientHello; empty = none. */
  readonly serverName: string;
  readonly tls: Pick<TlsInfo, "local"> | undefined;
}

/** `authority` is a host, with or without a port. A certificate without names of hosts is compared with nothing. */
export function isMisdirected({ serverName, tls }: ConnectionNames, authority: string): boolean {
  if (tls === undefined || serverName === "") return false;
  const host = authority.replace(/:\d*$/, "").toLowerCase();
  if (host === serverName.toLowerCase()) return false;
  const { dnsSans, ipSans } = tls.local;
  if (dnsSans.length === 0 && ipSans.length === 0) return false;
  const address = host.replace(/^\[(.*)\]$/, "$1");
  return !ipSans.includes(address) && !dnsSans.some((name) => matchesDnsName(name, host));
}
