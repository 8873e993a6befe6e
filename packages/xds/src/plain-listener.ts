// The side of a gRPC server on TCP without TLS. Connections are accepted here and handed over, so that those who call nothing are a few, for
// a short time, and use up no descriptors that others need.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { Newcomers } from "./newcomers.ts";

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
  readonly #silent: Newcomers;

  constructor(options: PlainListenerOptions) {
    this.#options = options;
    this.#silent = new Newcomers({ maxCount: options.maxSilent, lifeMs: firstCallTimeoutMs });
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
    this.#silent.admit(remote);
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
    this.#silent.add(socket);
    this.#sockets.add(socket);
    // Its errors end the calls on it; unheard they would end the process.
    socket.on("error", () => undefined);
    socket.on("close", () => this.#sockets.delete(socket));
    this.#options.accept(socket);
  }
}
