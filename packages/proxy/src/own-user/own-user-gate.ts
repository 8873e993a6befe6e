// Lets in only programs of this process's own user. Where no network namespace keeps those of other users away from
// loopback, ports that speak in the workload's name ask this of each connection: 8 µs of CPU, however many connections
// the machine has.
import type { Socket } from "node:net";
import { connectedSocket, isOfOwnUser, type SocketOwner } from "@tulle/capture";
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

/** The peer's socket is the one whose own end is our remote one. */
function ownerOfPeer({ localAddress, localPort, remoteAddress, remotePort }: Socket): SocketOwner {
  if (localAddress === undefined || remoteAddress === undefined) return "nobody";
  return connectedSocket({ ip: remoteAddress, port: remotePort ?? 0 }, { ip: localAddress, port: localPort ?? 0 });
}
