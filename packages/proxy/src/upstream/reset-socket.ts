// Ends a connection with a reset, so that its peer cannot take the end for a good one.
import net from "node:net";
import { TLSSocket } from "node:tls";

/**
 * TLS has no reset of its own, and neither have Unix sockets: their peers see the end without a close_notify, or just
 * the end.
 */
export function resetSocket(socket: net.Socket): void {
  const isTcp = !(socket instanceof TLSSocket) && socket.remoteAddress !== undefined;
  if (isTcp) socket.resetAndDestroy();
  else socket.destroy();
}
