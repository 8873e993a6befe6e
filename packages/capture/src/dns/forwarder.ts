// Passes questions that are none of the mesh's on to the machine's name servers, and their answers back, byte for byte.
// Nothing is kept: what a server said once may be wrong later.
import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { connect, isIPv6, type Socket } from "node:net";
import type { Clock } from "@tulle/timing";
import { isAnswerTo } from "./dns-message.ts";
import { LengthPrefixed, withLength } from "./length-prefixed.ts";

export interface NameServer {
  readonly address: string;
  readonly port: number;
}

export interface ForwarderOptions {
  /** In order of preference; the one that answered last is asked first. */
  readonly servers: readonly NameServer[];
  /** How long each of them is waited for. */
  readonly timeoutMs: number;
  /** How often each of them is asked. */
  readonly attempts: number;
  readonly clock: Clock;
}

export type Transport = "udp" | "tcp";

/** Each has a socket of its own: with a port that nobody can guess, an answer is hard to forge (RFC 5452). */
const maxInFlight = 512;
/** A client has long given up by then, whatever resolv.conf says. */
const maxWaitMs = 15_000;

export class Forwarder {
  readonly #options: ForwarderOptions;
  #preferred = 0;
  #inFlight = 0;
  #isClosed = false;
  readonly #open = new Set<() => void>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /** Undefined when no server has answered in time, or too many questions wait already. */
  async ask(query: Buffer, transport: Transport): Promise<Buffer | undefined> {
    if (this.#inFlight >= maxInFlight) return undefined;
    this.#inFlight += 1;
    try {
      return await this.#askInTurn(query, transport);
    } finally {
      this.#inFlight -= 1;
    }
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Nobody is asked from now on; questions that wait have no answer. */
  close(): void {
    this.#isClosed = true;
    for (const giveUp of this.#open) giveUp();
  }

  async #askInTurn(query: Buffer, transport: Transport): Promise<Buffer | undefined> {
    const { servers, timeoutMs, attempts, clock } = this.#options;
    const first = this.#preferred;
    const deadlineMs = clock.nowMs() + maxWaitMs;
    for (let attempt = 0; attempt < attempts * servers.length; attempt += 1) {
      const index = (first + attempt) % servers.length;
      const leftMs = Math.min(timeoutMs, deadlineMs - clock.nowMs());
      if (leftMs <= 0 || this.#isClosed) break;
      const answer = await this.#askOne(servers[index]!, query, transport, leftMs);
      if (answer === undefined) continue;
      this.#preferred = index;
      return answer;
    }
    return undefined;
  }

  #askOne(server: NameServer, query: Buffer, transport: Transport, timeoutMs: number): Promise<Buffer | undefined> {
    const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
    const giveUp = (): void => resolve(undefined);
    const onMessage = (message: Buffer): void => {
      if (isAnswerTo(message, query)) resolve(message);
    };
    const ask = transport === "udp" ? askByDatagram : askByStream;
    const end = ask(server, query, onMessage, giveUp);
    const cancel = this.#options.clock.after(timeoutMs, giveUp);
    this.#open.add(giveUp);
    return promise.finally(() => {
      cancel();
      this.#open.delete(giveUp);
      end();
    });
  }
}

type Ask = (
  server: NameServer,
  query: Buffer,
  onMessage: (message: Buffer) => void,
  onFailed: () => void,
) => () => void;

/** Of a connected socket the kernel takes nothing that comes from elsewhere, and tells that nobody listens there. */
const askByDatagram: Ask = ({ address, port }, query, onMessage, onFailed) => {
  const socket: DatagramSocket = createSocket(isIPv6(address.replace(/%.*$/, "")) ? "udp6" : "udp4");
  socket.on("error", onFailed);
  socket.on("message", onMessage);
  // Not as the call's own callback, which would be told of a failure, too.
  socket.on("connect", () => socket.send(query));
  socket.connect(port, address);
  return () => socket.close();
};

const askByStream: Ask = ({ address, port }, query, onMessage, onFailed) => {
  const socket: Socket = connect(port, address, () => socket.write(withLength(query)));
  const messages = new LengthPrefixed();
  socket.on("error", onFailed);
  socket.on("close", onFailed);
  socket.on("data", (chunk: Buffer) => {
    for (const message of messages.take(chunk)) onMessage(message);
  });
  return () => socket.destroy();
};
