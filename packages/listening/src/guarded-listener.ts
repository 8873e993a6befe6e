// A TCP server whose newcomers, the connections that have not shown yet that they are worth a place, are a few, for a
// short time. The oldest makes way for one more: whoever holds many and says nothing keeps nobody out.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { acceptBacklog } from "./accept-backlog.ts";

export interface GuardedListenerOptions {
  /** Of all connections; undefined where others bound them. */
  readonly maxConnections?: number;
  readonly maxNewcomers: number;
  /** From the connection's begin to its admission; undefined where something else ends those that take too long. */
  readonly newcomerLifeMs?: number;
  /** Whether a connection that was just accepted is closed. */
  readonly refuses: (socket: Socket) => boolean;
  readonly accept: (socket: Socket) => void;
}

interface Newcomer {
  readonly socket: Socket;
  readonly deadline: NodeJS.Timeout | undefined;
}

export class GuardedListener {
  readonly #listening: Server;
  readonly #options: GuardedListenerOptions;
  readonly #sockets = new Set<Socket>();
  /** By remote address and port, the oldest first. */
  readonly #newcomers = new Map<string, Newcomer>();

  constructor(options: GuardedListenerOptions) {
    this.#options = options;
    this.#listening = createServer((socket) => this.#take(socket));
    if (options.maxConnections !== undefined) this.#listening.maxConnections = options.maxConnections;
  }

  /** Rejects if the address cannot be bound. With a `descriptor` it is that listening socket which is accepted from. */
  async listen(host: string, port: number, descriptor?: number): Promise<number> {
    const where = descriptor === undefined ? { host, port } : { fd: descriptor };
    this.#listening.listen({ ...where, backlog: acceptBacklog });
    await once(this.#listening, "listening");
    return (this.#listening.address() as AddressInfo).port;
  }

  /** The connection from there may stay. */
  admit(remote: string): void {
    clearTimeout(this.#newcomers.get(remote)?.deadline);
    this.#newcomers.delete(remote);
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    const closed = once(this.#listening, "close");
    this.#listening.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #take(socket: Socket): void {
    const { refuses, accept, newcomerLifeMs } = this.#options;
    if (refuses(socket)) {
      socket.destroy();
      return;
    }
    this.#makeRoom();
    const remote = remoteOf(socket);
    const deadline = newcomerLifeMs === undefined ? undefined : setTimeout(() => socket.destroy(), newcomerLifeMs);
    const newcomer: Newcomer = { socket, deadline };
    this.#newcomers.set(remote, newcomer);
    this.#sockets.add(socket);
    // Its errors end what runs on it; unheard they would end the process.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearTimeout(deadline);
      this.#sockets.delete(socket);
      // The client's port may have a new connection already.
      if (this.#newcomers.get(remote) === newcomer) this.#newcomers.delete(remote);
    });
    accept(socket);
  }

  /** A connection is forgotten at once: its end comes only after all that have knocked together are taken. */
  #makeRoom(): void {
    for (const [remote, { socket }] of this.#newcomers) {
      if (this.#newcomers.size < this.#options.maxNewcomers) return;
      this.admit(remote);
      socket.destroy();
    }
  }
}

/** Address and port of the other end: all that a request or a gRPC call tells of its connection. */
export function remoteOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? "unknown"}:${remotePort ?? 0}`;
}
