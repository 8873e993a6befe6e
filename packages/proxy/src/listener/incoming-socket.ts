// A socket on its way from `accept` to what terminates its connection, with or without bytes that have been looked at.
import type { Socket } from "node:net";
import type { DataPath } from "../worker/data-path.ts";
import { adoptSocket } from "./adopt-socket.ts";

/** Exactly one of its methods is called, once. */
export interface IncomingSocket {
  /** For a TLS socket to be laid over; what has been looked at is in front of it again. */
  forTls(): Socket;
  /** Lets it read into the worker's buffer; what has been looked at comes first, on the next tick. */
  openRaw(onRead: (chunk: Buffer) => void): Socket;
  destroy(): void;
}

/** One that nobody has read from, accepted with `pauseOnConnect`. */
export function untouchedSocket(accepted: Socket, dataPath: DataPath, highWaterMark: number): IncomingSocket {
  return {
    forTls: () => accepted,
    openRaw: (onRead) => adoptSocket(accepted, dataPath, highWaterMark, onRead),
    destroy: () => accepted.destroy(),
  };
}
