// The line between listeners and what terminates their connections: the connection manager and the TCP proxy take a
// connection through `DownstreamConnectionOptions` and are known to the listener as a `DownstreamConnection`.
import type { Socket } from "node:net";
import type { ConnectionInfo } from "./connection-info.ts";
import type { DataPath } from "../worker/data-path.ts";
import type { NetworkFilter } from "./network-filter.ts";

export interface DownstreamConnection {
  /** Ends it after what it is doing: an HTTP connection with its next answer. */
  drain(): void;
  /** Ends it now. */
  destroy(): void;
}

export interface DownstreamConnectionOptions {
  readonly info: ConnectionInfo;
  /** Those that the connection has passed. */
  readonly networkFilters: readonly NetworkFilter[];
  /**
   * Gives the socket, once; TLS is established. What arrives comes to `onRead` as a view that is valid during the call,
   * first what listener filters have looked at (in a later turn of the event loop, never within this call). `end`,
   * `error` and `close` are the socket's own events; `pause` and `resume` stop and start reading.
   */
  openSocket(onRead: (chunk: Buffer) => void): Socket;
  readonly bufferLimitBytes: number;
  readonly dataPath: DataPath;
  /** Called once, when the socket is gone. */
  readonly onClosed: (connection: DownstreamConnection) => void;
}
