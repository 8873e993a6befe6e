// Lets in only programs of this process's own user. Where no network namespace keeps those of other users away from
// loopback, ports that speak in the workload's name ask this of each connection: 8 µs of CPU, however many connections
// the machine has.
import type { Socket } from "node:net";
import { connectedSocket, type SocketOwner } from "@tulle/capture";
import { type Logger, SeldomWarning } from "@tulle/telemetry";

export class OwnUserGate {
  readonly #warning: SeldomWarning;

  constructor(log: Pick<Logger, "warning">, nowMs?: () => number) {
    this.#warning = new SeldomWarning(log, nowMs);
  }

  /** A connection that is turned away is closed. `port` is what it came to, for the log. */
  admits(socket: Socket, port: string): boolean {
    if (isOfOwnUser(ownerOfPeer(socket))) return true;
    socket.destroy();
    this.#warning.tell("a program of another user was refused", { port });
    return false;
  }
}

/**
 * True for our own user and for root, which may do anything here. A socket that no process has is nobody's: who has
 * sent a request and closed at once is not told from anybody else. Systems that do not tell (they are not Linux) let
 * everybody pass; `tulle up` says so.
 */
export function isOfOwnUser(owner: SocketOwner): boolean {
  if (typeof owner === "object") return owner.uid === 0 || owner.uid === process.getuid?.();
  return owner === "unknown";
}

/** The peer's socket is the one whose own end is our remote one. */
function ownerOfPeer({ localAddress, localPort, remoteAddress, remotePort }: Socket): SocketOwner {
  if (localAddress === undefined || remoteAddress === undefined) return "nobody";
  return connectedSocket({ ip: remoteAddress, port: remotePort ?? 0 }, { ip: localAddress, port: localPort ?? 0 });
}
