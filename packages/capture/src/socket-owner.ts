// Whose socket it is, of those on this machine: at the other end of a connection, or behind an address that is about to
// be called. Nothing in a loopback address tells one user's program from another's; the kernel does.
//
// The kernel is asked for the one socket (NETLINK_SOCK_DIAG, sock_diag(7)), which costs the same however many there
// are: 10 to 15 µs, where reading the table of all of them takes 20 ms with 20,000 connections.
import { addressBytes, isSameAddress } from "./ip-address.ts";
import {
  decodeAnswer,
  encodeRequest,
  sockDiagProtocol,
  tcpState,
  type SocketAnswer,
  type WireEnd,
} from "./inet-diag.ts";
import { closeDescriptor, openNetlink, receiveMessage, sendMessage } from "./kernel.ts";
import { connectionInTable, listenerInTable } from "./socket-table.ts";

export interface SocketEnd {
  readonly ip: string;
  readonly port: number;
}

/** A socket that some process has open. */
export interface OwnedSocket {
  readonly uid: number;
  /** As `/proc/<pid>/fd` shows it: `socket:[<inode>]`. */
  readonly inode: number;
  /** Tells the socket from every other one. */
  readonly cookie: bigint;
}

/**
 * - `nobody`: there is no such socket, or no process has it: it has been closed, or nobody has accepted it yet, or it
 *   is in another network namespace.
 * - `unknown`: this system does not tell (it is not Linux).
 */
export type SocketOwner = OwnedSocket | "nobody" | "unknown";

/**
 * - `kernel`: by one question for one socket.
 * - `table`: by reading all sockets, where this process may not ask (a sandbox that closes netlink sockets).
 * - `none`: not at all.
 */
export type SocketLookup = "kernel" | "table" | "none";

/** Who has the socket whose own end is `local` and which is connected with `remote`. */
export function connectedSocket(local: SocketEnd, remote: SocketEnd): SocketOwner {
  if (socketLookup() === "none") return "unknown";
  const own = wireEnd(local);
  const peer = wireEnd(remote);
  if (own === undefined || peer === undefined || own.address.length !== peer.address.length) return "nobody";
  const socket = netlink === undefined ? connectionInTable(own, peer) : exactSocket(netlink, own, peer);
  // The kernel answers with the listener of that address where it finds no connection.
  return socket === undefined || !isConnection(socket, own, peer) ? "nobody" : owned(socket);
}

/** Who has the socket that takes connections to `at`, by listening there or at all addresses. */
export function listeningSocket(at: SocketEnd): SocketOwner {
  if (socketLookup() === "none") return "unknown";
  const end = wireEnd(at);
  if (end === undefined) return "nobody";
  // No connection comes from port 0: what is found can only be a listener.
  const nowhere = { address: new Uint8Array(end.address.length), port: 0 };
  const socket = netlink === undefined ? listenerInTable(end) : exactSocket(netlink, end, nowhere);
  return socket?.state === tcpState.listen ? owned(socket) : "nobody";
}

/**
 * Who has taken the connection that `caller` has made to `host`, where `before` is who listened there before it was
 * begun: who listened then and still does, for no second socket can be bound beside that one by another user; else who
 * has the far end itself, which is nobody's until it is accepted.
 */
export function takerOf(before: SocketOwner, host: SocketEnd, caller: SocketEnd): SocketOwner {
  const after = listeningSocket(host);
  const isSame = typeof before === "object" && typeof after === "object" && before.cookie === after.cookie;
  return isSame || after === "unknown" ? after : connectedSocket(host, caller);
}

/** For the whole process, as long as it lives. */
let netlink: number | undefined;

/** How sockets are looked up in this process. What it may not have now, for want of a descriptor, it may have later. */
export function socketLookup(): SocketLookup {
  if (process.platform !== "linux") return "none";
  netlink ??= answeringNetlink();
  return netlink === undefined ? "table" : "kernel";
}

/** A sandbox may let a process have the socket, and no kernel answers there. */
function answeringNetlink(): number | undefined {
  const descriptor = openNetlink(sockDiagProtocol);
  if (descriptor === undefined) return undefined;
  const loopback = { address: Uint8Array.of(127, 0, 0, 1), port: 0 };
  const answer = ask(descriptor, loopback, loopback);
  if (answer?.kind === "socket" || answer?.errorNumber === noSuchSocket) return descriptor;
  closeDescriptor(descriptor);
  return undefined;
}

/** ENOENT */
const noSuchSocket = 2;
const answerBuffer = new Uint8Array(4096);
let sequence = 0;

function exactSocket(descriptor: number, local: WireEnd, remote: WireEnd): SocketAnswer | undefined {
  const answer = ask(descriptor, local, remote);
  return answer?.kind === "socket" ? answer.socket : undefined;
}

/** The kernel has answered when it has taken the question. */
function ask(descriptor: number, local: WireEnd, remote: WireEnd): ReturnType<typeof decodeAnswer> {
  sequence = (sequence + 1) >>> 0;
  if (!sendMessage(descriptor, encodeRequest(local, remote, sequence))) return undefined;
  for (;;) {
    const length = receiveMessage(descriptor, answerBuffer);
    if (length === undefined) return undefined;
    const answer = decodeAnswer(answerBuffer.subarray(0, length), sequence);
    if (answer !== undefined) return answer;
  }
}

function wireEnd({ ip, port }: SocketEnd): WireEnd | undefined {
  const address = addressBytes(ip);
  return address === undefined ? undefined : { address, port };
}

function isConnection(socket: SocketAnswer, local: WireEnd, remote: WireEnd): boolean {
  return (
    // One that is only being opened is not the peer of a connection that stands: its addresses were used before.
    socket.state !== tcpState.listen &&
    socket.state !== tcpState.synSent &&
    socket.local.port === local.port &&
    socket.remote.port === remote.port &&
    isSameAddress(socket.local.address, local.address) &&
    isSameAddress(socket.remote.address, remote.address)
  );
}

/** What was closed belongs to uid 0 in the kernel's words. */
function owned({ uid, inode, cookie }: SocketAnswer): SocketOwner {
  return inode === 0 ? "nobody" : { uid, inode, cookie };
}
