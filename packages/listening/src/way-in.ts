// The way in to a program that cannot inherit the sockets which others come to: each of their connections is made a
// second time.
import { createServer, type Server, type Socket } from "node:net";
import type { Logger } from "@tulle/telemetry";
import { descriptorLimit, descriptorOf, DescriptorReserve } from "./descriptor-reserve.ts";
import type { InheritedDescriptors } from "./inherited-descriptors.ts";
import { joinConnections } from "./joined-connections.ts";

export interface WayInOptions {
  /** Its own: they are closed with it. */
  readonly descriptors: InheritedDescriptors;
  /** To the program's port, for a client of that address; it allows to be half open. */
  readonly connect: (port: number, client: string) => Socket;
  readonly log: Pick<Logger, "error" | "info">;
}

export class WayIn {
  readonly #servers: readonly Server[];
  readonly #reserve: DescriptorReserve;
  readonly #options: WayInOptions;

  /** Takes connections from now on; what came before has waited. */
  constructor(options: WayInOptions) {
    this.#options = options;
    this.#reserve = new DescriptorReserve(options.log, descriptorLimit());
    this.#servers = [...options.descriptors].flatMap(([port, descriptors]) =>
      descriptors.map((descriptor) => this.#listen(port, descriptor)),
    );
  }

  #listen(port: number, descriptor: number): Server {
    const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#accept(socket, port),
    );
    const { log } = this.#options;
    server.on("error", (error) => log.error("an inherited socket does not accept", { port, reason: error.message }));
    return server.listen({ fd: descriptor });
  }

  #accept(socket: Socket, port: number): void {
    // Each needs a second descriptor.
    if (this.#reserve.refuses(descriptorOf(socket), performance.now())) return void socket.destroy();
    const onward = this.#options.connect(port, socket.remoteAddress ?? "");
    joinConnections(socket, onward.setNoDelay(true));
  }

  /** Takes no more: they wait for whoever else has the sockets, or comes next. Those that are open go on. */
  close(): void {
    for (const server of this.#servers) server.close();
  }
}
