// The way in to an Envoy by sockets that the parent process has bound. Envoy cannot inherit them: the agent takes their
// connections and makes each a second time, from the address of the client that it is for.
import { createServer, type Server, type Socket, connect } from "node:net";
import {
  descriptorLimit,
  descriptorOf,
  DescriptorReserve,
  type InheritedDescriptors,
  joinConnections,
} from "@tulle/listening";
import type { Logger } from "@tulle/telemetry";

export interface WayInOptions {
  readonly descriptors: InheritedDescriptors;
  /** Where Envoy listens, at the ports that the descriptors are for. */
  readonly host: string;
  readonly log: Logger;
}

/** Where connections to a loopback address come from unless they are bound. */
const usualClient = "127.0.0.1";

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
    const client = socket.remoteAddress ?? usualClient;
    const onward = connect({
      host: this.#options.host,
      port,
      allowHalfOpen: true,
      noDelay: true,
      // A bound connection has a port of the machine for itself alone; no more are bound than need it.
      ...(client === usualClient ? {} : { localAddress: client }),
    });
    joinConnections(socket, onward);
  }

  /** Takes no more: they wait for whoever else has the sockets, or comes next. Those that are open go on. */
  close(): void {
    for (const server of this.#servers) server.close();
  }
}
