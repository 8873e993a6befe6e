// How a connection ended, as logs tell it.
import type { Socket } from "node:net";

/** By an end, or by a reset of ours or of the peer's (Envoy: DetectedCloseType). */
export type CloseType = "Normal" | "LocalReset" | "RemoteReset";

/** Of a socket that has closed and that we have not reset. */
export function closeTypeOf(socket: Socket): CloseType {
  const error: NodeJS.ErrnoException | null = socket.errored;
  return error?.code === "ECONNRESET" ? "RemoteReset" : "Normal";
}
