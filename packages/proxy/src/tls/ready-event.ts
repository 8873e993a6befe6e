// When a socket that is being opened may be written to: plain ones once they are connected, those with TLS once the peer's certificate
// has been found good.
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/** Emitted with the connection's `TlsInfo` by whoever verifies; `secureConnect` comes before. */
export const verifiedEvent = "verified";

/** Its listeners get `TlsInfo`, or nothing where the connection is plain. */
export function readyEventOf(socket: Socket): string {
  return socket instanceof TLSSocket ? verifiedEvent : "connect";
}
