// Which of its two ends a connection was closed by, for statistics.
import type { Socket } from "node:net";

/** Of a socket that has closed: the peer ended it, or it broke, before we ended our side (Envoy: `RemoteClose`). */
export function closedByPeer(socket: Socket): boolean {
  return !socket.writableEnded && (socket.readableEnded || socket.errored !== null);
}
