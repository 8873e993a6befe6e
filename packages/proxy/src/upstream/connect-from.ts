// Opens a socket from an address that need not be this machine's own (Envoy: the socket options of original_src).
import net from "node:net";
import { addressBytes, type SocketEnd, transparentSocket } from "@tulle/capture";
import type { UpstreamSource } from "../http/upstream-source.ts";

/** Of an error: the kernel lets only those do it that have CAP_NET_ADMIN, and a port may be somebody's. */
export const sourceRefused = "TULLE_SOURCE_REFUSED";

/** Undefined where the kernel refuses the address. */
export function connectFrom(
  source: UpstreamSource,
  { ip, port }: SocketEnd,
  options: net.SocketConstructorOpts,
): net.Socket | undefined {
  const fd = transparentSocket(addressBytes(source.ip)!, source.port, source.mark === 0 ? undefined : source.mark);
  if (fd === undefined) return undefined;
  const socket = new net.Socket({ ...options, fd, manualStart: true } as net.SocketConstructorOpts);
  return socket.setNoDelay(true).connect({ host: ip, port });
}

export function refusedSocket(): net.Socket {
  const socket = new net.Socket();
  const error = Object.assign(new Error("hosts may not be called from that address"), { code: sourceRefused });
  queueMicrotask(() => socket.destroy(error));
  return socket;
}
