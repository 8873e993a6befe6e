// The few C library calls that Node does not offer: a lock that the kernel drops with its holder, and listening sockets
// that nobody polls until a child process inherits them.
import { isIPv6 } from "node:net";
import { addressBytes } from "@tulle/capture";
import { acceptBacklog } from "@tulle/listening";
import koffi from "koffi";

const library = koffi.load(null);
const flockCall = library.func("int flock(int fd, int operation)");
const socketCall = library.func("int socket(int domain, int type, int protocol)");
const setsockoptCall = library.func("int setsockopt(int fd, int level, int name, const int *value, uint32_t length)");
const bindCall = library.func("int bind(int fd, const uint8_t *address, uint32_t length)");
const listenCall = library.func("int listen(int fd, int backlog)");
const closeCall = library.func("int close(int fd)");
const fcntlCall = library.func("int fcntl(int fd, int command, int argument)");

const linux = process.platform === "linux";
const addressFamilyInet = 2;
const addressFamilyInet6 = linux ? 10 : 30;
const socketStream = 1;
// Without it every child that is spawned meanwhile would hold the port open (socket(2)); macOS has no such flag.
const socketCloseOnExec = linux ? 0o2000000 : 0;
const socketLevel = linux ? 1 : 0xffff;
const reuseAddress = linux ? 2 : 4;
/** F_DUPFD_CLOEXEC. */
const duplicateCloseOnExec = linux ? 1030 : 67;
const lockExclusive = 2;
const lockNonBlocking = 4;

/** Takes the exclusive lock of an open file; false when another process has it (flock(2)). */
export function tryLock(descriptor: number): boolean {
  return flockCall(descriptor, lockExclusive | lockNonBlocking) === 0;
}

/** A failed call, with the kernel's name for the reason (`EADDRINUSE`). */
export class SystemCallFailed extends Error {
  override readonly name = "SystemCallFailed";
  readonly code: string;

  constructor(call: string, errorNumber: number) {
    const code =
      Object.entries(koffi.os.errno).find(([, value]) => value === errorNumber)?.[0] ?? `errno ${errorNumber}`;
    super(`${call}: ${code}`);
    this.code = code;
  }
}

/**
 * A TCP socket that listens on `address`:`port` and is never accepted from in this process; `openSocket` makes it in
 * another network. Answers its descriptor.
 * @throws {SystemCallFailed}
 */
export function listeningSocket(
  address: string,
  port: number,
  openSocket: (kind: "tcp4" | "tcp6") => number = openTcpSocket,
): number {
  const descriptor = openSocket(isIPv6(address) ? "tcp6" : "tcp4");
  if (descriptor < 0) throw new SystemCallFailed("socket", koffi.errno());
  // Connections of an earlier run in TIME_WAIT must not keep the port; a second listener is refused all the same.
  setsockoptCall(descriptor, socketLevel, reuseAddress, [1], 4);
  const target = socketAddress(address, port);
  if (bindCall(descriptor, target, target.length) !== 0) throw failAndClose("bind", descriptor);
  if (listenCall(descriptor, acceptBacklog) !== 0) throw failAndClose("listen", descriptor);
  return descriptor;
}

function openTcpSocket(kind: "tcp4" | "tcp6"): number {
  const family = kind === "tcp6" ? addressFamilyInet6 : addressFamilyInet;
  return socketCall(family, socketStream | socketCloseOnExec, 0) as number;
}

/** A second descriptor of the same socket, which no child process inherits. @throws {SystemCallFailed} */
export function secondDescriptor(descriptor: number): number {
  const second = fcntlCall(descriptor, duplicateCloseOnExec, 0) as number;
  if (second < 0) throw new SystemCallFailed("fcntl", koffi.errno());
  return second;
}

export function closeSocket(descriptor: number): void {
  closeCall(descriptor);
}

function failAndClose(call: string, descriptor: number): SystemCallFailed {
  const error = new SystemCallFailed(call, koffi.errno());
  closeCall(descriptor);
  return error;
}

/** `struct sockaddr_in` (ip(7)) or `sockaddr_in6` (ipv6(7)); BSD puts a length before the family. */
function socketAddress(address: string, port: number): Uint8Array {
  const isLong = isIPv6(address);
  const bytes = Buffer.alloc(isLong ? 28 : 16);
  const family = isLong ? addressFamilyInet6 : addressFamilyInet;
  if (linux) bytes.writeUInt16LE(family, 0);
  else bytes.set([bytes.length, family], 0);
  bytes.writeUInt16BE(port, 2);
  bytes.set(addressBytes(address) ?? [], isLong ? 8 : 4);
  return bytes;
}
