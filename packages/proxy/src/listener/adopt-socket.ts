// Lets an accepted socket read into the worker's one buffer, as `net.connect({ onread })` does for sockets that we
// open: a server's own sockets allocate 64 KiB for each read and give the rest back (measured: 1.5 µs of 25 a request).
import net from "node:net";
import type { DataPath } from "../worker/data-path.ts";

/**
 * What Node keeps on a socket beside its documented fields; the runtime is pinned, and a test opens and closes
 * connections.
 */
interface SocketInternals {
  _handle: unknown;
  _server: unknown;
  server: unknown;
}

/**
 * Takes the connection of a socket that was accepted with `pauseOnConnect` over into a new one. `onRead` gets a view on
 * the worker's read buffer that is valid during the call.
 */
export function adoptSocket(
  accepted: net.Socket,
  dataPath: DataPath,
  highWaterMark: number,
  onRead: (chunk: Buffer) => void,
): net.Socket {
  const from = accepted as unknown as SocketInternals;
  const options = {
    handle: from._handle,
    allowHalfOpen: true,
    highWaterMark,
    onread: {
      buffer: dataPath.readBuffer,
      callback: (bytes: number): boolean => {
        onRead(dataPath.readView(bytes));
        return true;
      },
    },
  };
  const socket = new net.Socket(options as unknown as net.SocketConstructorOpts);
  // The server counts its connections by these, to know when it has closed.
  const to = socket as unknown as SocketInternals;
  to.server = from.server;
  to._server = from._server;
  from._handle = null;
  from.server = null;
  from._server = null;
  return socket;
}
