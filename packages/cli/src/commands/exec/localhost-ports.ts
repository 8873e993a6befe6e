// What `localhost` is within a pod, while a command runs: pods of one machine share its network, each at addresses of
// its own, so their ports are lent to the machine's localhost for that time. Only programs of this user are let in, as
// at the pod's proxy.
import { connect, createServer, type Server, type Socket } from "node:net";
import { connectedSocket, isOfOwnUser } from "@tulle/capture";
import type { LocalhostPort } from "@tulle/local";

export interface MissingPort extends LocalhostPort {
  /** For people. */
  readonly reason: string;
}

const localhost = ["127.0.0.1", "::1"];
/** A machine without IPv6. */
const noSuchAddress = ["EADDRNOTAVAIL", "EAFNOSUPPORT"];
const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  EACCES: "this user may not listen there",
};

export class LocalhostPorts implements AsyncDisposable {
  /** Those that lead elsewhere, or nowhere. */
  readonly missing: readonly MissingPort[];
  readonly #servers: readonly Server[];
  readonly #sockets: Set<Socket>;

  private constructor(servers: readonly Server[], missing: readonly MissingPort[], sockets: Set<Socket>) {
    this.#servers = servers;
    this.missing = missing;
    this.#sockets = sockets;
  }

  static async open(ports: readonly LocalhostPort[]): Promise<LocalhostPorts> {
    const sockets = new Set<Socket>();
    const servers: Server[] = [];
    const missing: MissingPort[] = [];
    for (const port of ports) {
      const opened = await Promise.all(localhost.map((host) => open(host, port, sockets)));
      servers.push(...opened.filter((each) => typeof each !== "string"));
      const code = opened.find((each) => typeof each === "string" && !noSuchAddress.includes(each));
      if (typeof code === "string") missing.push({ ...port, reason: reasons[code] ?? code });
    }
    return new LocalhostPorts(servers, missing, sockets);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = this.#servers.map((server) => new Promise((resolve) => server.close(resolve)));
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(closed);
  }
}

/** The server, or the code of what stands in its way. */
function open(host: string, to: LocalhostPort, sockets: Set<Socket>): Promise<Server | string> {
  const { promise, resolve } = Promise.withResolvers<Server | string>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => lead(socket, to, sockets));
  server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  server.listen({ host, port: to.port, exclusive: true, ipv6Only: true }, () => resolve(server));
  return promise;
}

function lead(socket: Socket, { port, address }: LocalhostPort, sockets: Set<Socket>): void {
  if (!isOfOwnUser(ownerOfPeer(socket))) return void socket.destroy();
  const upstream = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
  for (const [each, other] of [
    [socket, upstream],
    [upstream, socket],
  ] as const) {
    sockets.add(each);
    // Refused there is refused here, as far as that can still be told.
    each.once("error", () => other.resetAndDestroy());
    each.once("close", () => {
      sockets.delete(each);
      other.destroySoon();
    });
    each.pipe(other);
  }
}

function ownerOfPeer({
  localAddress,
  localPort,
  remoteAddress,
  remotePort,
}: Socket): ReturnType<typeof connectedSocket> {
  if (localAddress === undefined || remoteAddress === undefined) return "nobody";
  return connectedSocket({ ip: remoteAddress, port: remotePort ?? 0 }, { ip: localAddress, port: localPort ?? 0 });
}
