// When a socket that is being opened may be written to: plain ones once they are connected, those whose peer is looked
// at once it has been found good: by its certificate, or by whose program it is.
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/**
 * Emitted with the connection's `TlsInfo`, if it has any, by whoever looks; `connect` and `secureConnect` come before.
 */
export const verifiedEvent = "verified";

const lookedAt = new WeakSet<Socket>();

/** Of a plain socket whose peer is looked at: whoever does it emits `verifiedEvent`. */
export function awaitVerification(socket: Socket): void {
  lookedAt.add(socket);
}

/** Its listeners get `TlsInfo`, or nothing where the connection is plain. */
export function readyEventOf(socket: Socket): string {
  return socket instanceof TLSSocket || lookedAt.has(socket) ? verifiedEvent : "connect";
}
