// Messages of sock_diag(7): the question for one socket of TCP by its addresses, and the kernel's answer. Numbers are
// in the machine's own byte order, which is little-endian on all machines that Tulle runs on, but for addresses and
// ports.

/** NETLINK_SOCK_DIAG, the protocol of the netlink socket. */
export const sockDiagProtocol = 4;

/** States of TCP as the kernel numbers them (include/net/tcp_states.h). */
export const tcpState = { synSent: 2, listen: 10 } as const;

/** Address (4 or 16 bytes) and port. */
export interface WireEnd {
  readonly address: Uint8Array;
  readonly port: number;
}

/** One socket, as the kernel describes it. */
export interface SocketAnswer {
  readonly state: number;
  readonly local: WireEnd;
  readonly remote: WireEnd;
  /** Names the socket for as long as the machine runs. */
  readonly cookie: bigint;
  readonly uid: number;
  /** 0 = no process has it: it was closed, or nobody has accepted it yet. */
  readonly inode: number;
}

export type DiagAnswer =
  | { readonly kind: "socket"; readonly socket: SocketAnswer }
  /** The kernel's number for the reason, such as 2 (ENOENT): there is no such socket. */
  | { readonly kind: "error"; readonly errorNumber: number };

const headerBytes = 16;
/** `struct inet_diag_sockid`: ports, addresses, interface, cookie. */
const socketIdBytes = 48;
export const requestBytes = headerBytes + 8 + socketIdBytes;

const typeSockDiagByFamily = 20;
const typeError = 2;
const flagRequest = 1;
const familyInet = 2;
const familyInet6 = 10;
const protocolTcp = 6;
const anyCookie = 0xff_ff_ff_ff;

/** `struct nlmsghdr`, `struct inet_diag_req_v2`: the socket whose own end is `local`, by its exact addresses. */
export function encodeRequest(local: WireEnd, remote: WireEnd, sequence: number): Uint8Array {
  const bytes = new Uint8Array(requestBytes);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, requestBytes, true);
  view.setUint16(4, typeSockDiagByFamily, true);
  view.setUint16(6, flagRequest, true);
  view.setUint32(8, sequence, true);
  bytes[16] = local.address.length === 4 ? familyInet : familyInet6;
  bytes[17] = protocolTcp;
  view.setUint32(20, 0xff_ff_ff_ff, true); // in any state
  view.setUint16(24, local.port);
  view.setUint16(26, remote.port);
  bytes.set(local.address, 28);
  bytes.set(remote.address, 44);
  view.setUint32(64, anyCookie, true);
  view.setUint32(68, anyCookie, true);
  return bytes;
}

/** Undefined for a message that is no answer to the request of that sequence number. */
export function decodeAnswer(message: Uint8Array, sequence: number): DiagAnswer | undefined {
  const view = new DataView(message.buffer, message.byteOffset, message.length);
  if (message.length < headerBytes + 4 || view.getUint32(8, true) !== sequence) return undefined;
  const type = view.getUint16(4, true);
  if (type === typeError) return { kind: "error", errorNumber: -view.getInt32(16, true) };
  // `struct inet_diag_msg`: family, state, timer, retransmits, socket id, expires, queues, uid, inode.
  if (type !== typeSockDiagByFamily || message.length < headerBytes + 4 + socketIdBytes + 20) return undefined;
  const addressLength = message[16] === familyInet ? 4 : 16;
  return {
    kind: "socket",
    socket: {
      state: message[17]!,
      local: { port: view.getUint16(20), address: message.slice(24, 24 + addressLength) },
      remote: { port: view.getUint16(22), address: message.slice(40, 40 + addressLength) },
      cookie: view.getBigUint64(60, true),
      uid: view.getUint32(80, true),
      inode: view.getUint32(84, true),
    },
  };
}
