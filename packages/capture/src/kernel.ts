// The calls of the C library that Node does not offer, by `node:ffi`: all of them are in this file. The library is
// loaded by the first call (2.5 ms, 2.1 MB), so that a process that needs none pays nothing.
import { isIPv6 } from "node:net";
import { plainAddressText } from "./ip-address.ts";

type Definitions = Parameters<typeof import("node:ffi").dlopen>[1];
type CallsOf<T> = { readonly [Name in keyof T]: (...args: readonly unknown[]) => number | bigint };

const definitions = {
  socket: { arguments: ["i32", "i32", "i32"], return: "i32" },
  send: { arguments: ["i32", "buffer", "u64", "i32"], return: "i64" },
  recv: { arguments: ["i32", "buffer", "u64", "i32"], return: "i64" },
  close: { arguments: ["i32"], return: "i32" },
  dup: { arguments: ["i32"], return: "i32" },
  unshare: { arguments: ["i32"], return: "i32" },
  setns: { arguments: ["i32", "i32"], return: "i32" },
  setsockopt: { arguments: ["i32", "i32", "i32", "buffer", "u32"], return: "i32" },
  bind: { arguments: ["i32", "buffer", "u32"], return: "i32" },
  getsockopt: { arguments: ["i32", "i32", "i32", "buffer", "buffer"], return: "i32" },
} as const;

let loaded: CallsOf<typeof definitions> | undefined;

/** @throws where there is no such library, or it may not be loaded. */
function calls(): CallsOf<typeof definitions> {
  return (loaded ??= open(definitions));
}

/** @throws where the library has no such call, or may not be loaded */
function open<const T extends Definitions>(wanted: T): CallsOf<T> {
  const warn = Object.getOwnPropertyDescriptor(process, "emitWarning")!;
  // The runtime is pinned, and a test calls it: that the module is experimental is no news for whoever runs Tulle.
  process.emitWarning = () => undefined;
  try {
    return process.getBuiltinModule("node:ffi").dlopen(null, wanted).functions as CallsOf<T>;
  } finally {
    Object.defineProperty(process, "emitWarning", warn);
  }
}

/** Gives back what the C library's allocator keeps of freed memory (malloc_trim(3)); others have no such call. */
export function trimAllocator(): void {
  try {
    const { malloc_trim } = open({ malloc_trim: { arguments: ["u64"], return: "i32" } } as const);
    malloc_trim(0n);
  } catch {
    // It keeps it.
  }
}

const addressFamilyNetlink = 16;
const socketRaw = 3;
const socketCloseOnExec = 0o2000000;
const doNotWait = 0x40;
const socketLevel = 1;
const peerCredentials = 17;
const ipLevel = 0;
const ipv6Level = 41;
/** SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST. */
const originalDestinationOption = 80;

/**
 * A netlink(7) socket, which talks to the kernel alone. Answers its descriptor, or undefined where this process gets
 * none.
 */
export function openNetlink(protocol: number): number | undefined {
  try {
    const descriptor = calls().socket(addressFamilyNetlink, socketRaw | socketCloseOnExec, protocol);
    return Number(descriptor) < 0 ? undefined : Number(descriptor);
  } catch {
    return undefined;
  }
}

/** False when the kernel does not take the message. */
export function sendMessage(descriptor: number, message: Uint8Array): boolean {
  return Number(calls().send(descriptor, message, BigInt(message.length), 0)) === message.length;
}

/**
 * The length of the message that is there, written to the beginning of `into`; undefined when there is none. Never
 * waits.
 */
export function receiveMessage(descriptor: number, into: Uint8Array): number | undefined {
  const length = Number(calls().recv(descriptor, into, BigInt(into.length), doNotWait));
  return length < 0 ? undefined : length;
}

export function closeDescriptor(descriptor: number): void {
  calls().close(descriptor);
}

/**
 * Who was at the other end of a Unix socket when it was connected, or listened there, as the kernel knows it (unix(7),
 * SO_PEERCRED); undefined where the system does not tell (it is not Linux), or it is no such socket.
 */
export function unixSocketPeer(descriptor: number): { readonly pid: number; readonly uid: number } | undefined {
  const peer = peerCredentialsOf(descriptor);
  return peer !== undefined && peer.pid > 0 ? peer : undefined;
}

/** Its user alone, which is known of a process of another PID namespace, too: that has no number here. */
export function unixSocketPeerUid(descriptor: number): number | undefined {
  return peerCredentialsOf(descriptor)?.uid;
}

const nobody = 0xff_ff_ff_ff;

function peerCredentialsOf(descriptor: number): { readonly pid: number; readonly uid: number } | undefined {
  if (process.platform !== "linux") return undefined;
  // struct ucred: pid, uid, gid.
  const credentials = Buffer.alloc(12);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(credentials.length);
  try {
    const answer = calls().getsockopt(descriptor, socketLevel, peerCredentials, credentials, length);
    const uid = credentials.readUInt32LE(4);
    // A socket of another family answers, too: with nobody's number.
    return Number(answer) === 0 && uid !== nobody ? { pid: credentials.readInt32LE(0), uid } : undefined;
  } catch {
    return undefined;
  }
}

/** `struct sockaddr_in6`, the longer of the two. */
const longAddressBytes = 28;
const destinationBuffer = Buffer.alloc(longAddressBytes);
const destinationLength = Buffer.alloc(4);

/**
 * Where a connection was going before rules of netfilter redirected it to this machine's socket (iptables REDIRECT,
 * nftables `redirect`; SO_ORIGINAL_DST). A connection that nobody redirected has its own local address there, or none:
 * undefined where the kernel tracks no such connection, or the system is not Linux. `localIp`: the socket's own
 * address as the connection has it; a socket of IPv6 whose peer speaks IPv4 is asked as one of IPv4 (`::ffff:…`).
 */
export function originalDestination(
  descriptor: number,
  localIp: string,
): { readonly ip: string; readonly port: number } | undefined {
  if (process.platform !== "linux") return undefined;
  const isLong = isIPv6(localIp) && !(localIp.startsWith("::ffff:") && localIp.includes("."));
  destinationLength.writeUInt32LE(longAddressBytes);
  try {
    const level = isLong ? ipv6Level : ipLevel;
    const answer = calls().getsockopt(
      descriptor,
      level,
      originalDestinationOption,
      destinationBuffer,
      destinationLength,
    );
    if (Number(answer) !== 0) return undefined;
  } catch {
    return undefined;
  }
  // sockaddr_in: family, port, address; sockaddr_in6: family, port, flow, address, scope.
  const address = isLong ? destinationBuffer.subarray(8, 24) : destinationBuffer.subarray(4, 8);
  return { ip: plainAddressText(address), port: destinationBuffer.readUInt16BE(2) };
}

const tcpLevel = 6;
const tcpInfoOption = 11;
/** Of `struct tcp_info`, up to its field `tcpi_rtt`. */
const roundTripAt = 68;
const tcpInfo = Buffer.alloc(roundTripAt + 4);
const tcpInfoLength = Buffer.alloc(4);

/**
 * The smoothed round trip of a TCP connection (tcp(7), TCP_INFO); undefined where the descriptor is none, or the system
 * does not tell (it is not Linux).
 */
export function roundTripMicros(descriptor: number): number | undefined {
  if (process.platform !== "linux") return undefined;
  tcpInfoLength.writeUInt32LE(tcpInfo.length);
  try {
    if (Number(calls().getsockopt(descriptor, tcpLevel, tcpInfoOption, tcpInfo, tcpInfoLength)) !== 0) return undefined;
  } catch {
    return undefined;
  }
  return tcpInfoLength.readUInt32LE() < tcpInfo.length ? undefined : tcpInfo.readUInt32LE(roundTripAt);
}

const streamSocket = 1;
const datagramSocket = 2;
const socketNonBlocking = 0o4000;
const addressFamilyInet = 2;
const addressFamilyInet6 = 10;
const ipTransparent = 19;
const ipv6Transparent = 75;
const socketMark = 36;
const bindAddressNoPort = 24;

const word = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);

/**
 * Lets a listening socket take connections to addresses and ports that are not its own, as the kernel leads them there
 * (nftables `tproxy`). False where the kernel refuses it: it takes CAP_NET_ADMIN.
 */
export function makeTransparent(descriptor: number, isIpv6: boolean): boolean {
  const [level, option] = isIpv6 ? [ipv6Level, ipv6Transparent] : [ipLevel, ipTransparent];
  try {
    return Number(calls().setsockopt(descriptor, level, option, word(1), 4)) === 0;
  } catch {
    return false;
  }
}

/**
 * A TCP socket at an address that need not be this machine's (ip(7), IP_TRANSPARENT), with a mark on what it sends.
 * Answers its descriptor, for `new net.Socket({ fd, manualStart: true })` or `listen({ fd })`, or undefined where the
 * kernel refuses one of the steps: it takes CAP_NET_ADMIN, or the port is somebody's.
 */
export function transparentSocket(address: Uint8Array, port: number, mark?: number): number | undefined {
  const isLong = address.length === 16;
  const end = Buffer.alloc(isLong ? longAddressBytes : 16);
  end.writeUInt16LE(isLong ? addressFamilyInet6 : addressFamilyInet, 0);
  end.writeUInt16BE(port, 2);
  end.set(address, isLong ? 8 : 4);
  try {
    const { socket, setsockopt, bind, close } = calls();
    const kind = streamSocket | socketCloseOnExec | socketNonBlocking;
    const descriptor = Number(socket(isLong ? addressFamilyInet6 : addressFamilyInet, kind, 0));
    if (descriptor < 0) return undefined;
    const set = (level: number, option: number, value: number): boolean =>
      Number(setsockopt(descriptor, level, option, word(value), 4)) === 0;
    const isMade =
      (isLong ? set(ipv6Level, ipv6Transparent, 1) : set(ipLevel, ipTransparent, 1)) &&
      (mark === undefined || set(socketLevel, socketMark, mark)) &&
      // Without a port of its own it gets one when it connects, which others to other hosts may have too.
      (port !== 0 || set(ipLevel, bindAddressNoPort, 1)) &&
      Number(bind(descriptor, end, end.length)) === 0;
    if (isMade) return descriptor;
    close(descriptor);
    return undefined;
  } catch {
    return undefined;
  }
}

export type SocketKind = "tcp4" | "tcp6" | "udp4" | "udp6";

/**
 * A socket of the network that the calling thread is in, bound and connected to nothing, for `new net.Socket({ fd })`,
 * `bind({ fd })` and the like. Answers its descriptor, or undefined where the kernel gives none.
 */
export function openSocket(kind: SocketKind): number | undefined {
  const family = kind.endsWith("6") ? addressFamilyInet6 : addressFamilyInet;
  const type = kind.startsWith("udp") ? datagramSocket : streamSocket;
  const descriptor = Number(calls().socket(family, type | socketCloseOnExec | socketNonBlocking, 0));
  return descriptor < 0 ? undefined : descriptor;
}

const newNetwork = 0x40_00_00_00;

/** Puts the calling thread into a network with nothing in it (unshare(2)); false where it may not. */
export function leaveNetwork(): boolean {
  return Number(calls().unshare(newNetwork)) === 0;
}

/** Puts the calling thread into the network of the descriptor (setns(2)); false where it may not. */
export function enterNetwork(descriptor: number): boolean {
  return Number(calls().setns(descriptor, newNetwork)) === 0;
}

const newProcesses = 0x20_00_00_00;

/** What the calling thread starts from now on is in the PID namespace of the descriptor; false where it may not. */
export function enterProcesses(descriptor: number): boolean {
  return Number(calls().setns(descriptor, newProcesses)) === 0;
}

/** A second descriptor of the same, which a program that takes this one's place finds open (dup(2)). */
export function inheritedCopy(descriptor: number): number {
  return Number(calls().dup(descriptor));
}
