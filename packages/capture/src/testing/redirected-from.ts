// What a redirected connection's socket tells of where it was going, asked for as a proxy does that is not ours.
import type { Socket } from "node:net";
import { addressText } from "../ip-address.ts";

const getsockopt = { arguments: ["i32", "i32", "i32", "buffer", "buffer"], return: "i32" } as const;
/** SO_ORIGINAL_DST at SOL_IP, IP6T_SO_ORIGINAL_DST at SOL_IPV6. */
const originalDestination = 80;

/** `10.0.0.1:80`, `[fd00::1]:80`; the socket's own address where nothing redirected it. */
export function redirectedFrom(socket: Socket): string {
  const { functions } = process.getBuiltinModule("node:ffi").dlopen(null, { getsockopt });
  const descriptor = (socket as unknown as { readonly _handle: { readonly fd: number } })._handle.fd;
  const { localAddress = "", localPort } = socket;
  const isLong = !localAddress.includes(".");
  const address = Buffer.alloc(28);
  const length = Buffer.from([28, 0, 0, 0]);
  const call = functions.getsockopt as (...args: readonly unknown[]) => number;
  if (call(descriptor, isLong ? 41 : 0, originalDestination, address, length) !== 0) {
    // In a network without rules that need it the kernel follows no connection.
    return isLong ? `[${localAddress}]:${localPort}` : `${localAddress.replace("::ffff:", "")}:${localPort}`;
  }
  return `${addressText(isLong ? address.subarray(8, 24) : address.subarray(4, 8))}:${address.readUInt16BE(2)}`;
}
