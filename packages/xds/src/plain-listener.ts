// The side of a gRPC server on TCP without TLS. Connections are accepted here and handed over, so that those who call nothing are a few, for
// a short time, and use up no descriptors that others need.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** From the connection's begin to its first call. */
const firstCallTimeoutMs = 10_000;

export interface PlainListenerOptions {
  readonly maxConnections: number;
  /** Connections that have called nothing yet. The oldest makes room: who says nothing keeps nobody out. */
  readonly maxSilent: number;
  /** Whether a connection that was just accepted is closed. */
  readonly refuses: (socket: Socket) => boolean;
  readonly accept: (socket: Socket) => void;
}

export class PlainListener {
  readonly #listening: Server;
  readonly #options: PlainListenerOptions;
  readonly #sockets = new Set<Socket>();
  /** By remote address and port, which is all that a gRPC call tells of its connection; the oldest first. */
  readonly #silent = new Map<string, { readonly socket: Socket; readonly deadline: NodeJS.Timeout }>();

  constructor(options: PlainListenerOptions) {
    this.#options = options;
    this.#listening = createServer((socket) => this.#take(socket));
    this.#listening.maxConnections = options.maxConnections;
  }

  /** Rejects if the address cannot be bound. */
  async listen(host: string, port: number): Promise<number> {
    this.#listening.listen({ host, port });
    await once(this.#listening, "listening");
    return (this.#listening.address() as AddressInfo).port;
  }

  /** A call has come by the connection. */
  called(remote: string): void {
    clearTimeout(this.#silent.get(remote)?.deadline);
    this.#silent.delete(remote);
  }

  async close(): Promise<void> {
    const closed = once(this.#listening, "close");
    this.#listening.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #take(socket: Socket): void {
    if (this.#options.refuses(socket)) {
      socket.destroy();
      return;
    }
    this.#makeRoom();
    const remote = `${socket.remoteAddress ?? "unknown"}:${socket.remotePort ?? 0}`;
    const entry = { socket, deadline: setTimeout(() => socket.destroy(), firstCallTimeoutMs) };
    this.#silent.set(remote, entry);
    this.#sockets.add(socket);
    // Its errors end the calls on it; unheard they would end the process.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearTimeout(entry.deadline);
      this.#sockets.delete(socket);
      // The client's port may have a new connection already.
      if (this.#silent.get(remote) === entry) this.#silent.delete(remote);
    });
    this.#options.accept(socket);
  }

  /** The oldest is forgotten at once: its end comes only after all that have knocked together are taken. */
  #makeRoom(): void {
    for (const [remote, { socket }] of this.#silent) {
      if (this.#silent.size < this.#options.maxSilent) return;
      this.#silent.delete(remote);
      socket.destroy();
    }
  }
}
