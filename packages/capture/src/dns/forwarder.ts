// Passes questions that are none of the mesh's on to the machine's name servers, and their answers back, byte for byte
// but for the number of each. Nothing is kept: what a server said once may be wrong later.
import { randomInt } from "node:crypto";
import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { connect, isIPv6, Socket, type SocketConstructorOpts } from "node:net";
import type { Clock } from "@tulle/timing";
import type { SocketKind } from "../kernel.ts";
import { isAnswerTo, isRefusal } from "./dns-message.ts";
import { LengthPrefixed, withLength } from "./length-prefixed.ts";

export interface NameServer {
  readonly address: string;
  readonly port: number;
}

export interface Forwarding {
  /** In order of preference; the one that answered last is asked first. */
  readonly servers: readonly NameServer[];
  /** How long each of them is waited for. */
  readonly timeoutMs: number;
  /** How often each of them is asked. */
  readonly attempts: number;
}

export interface ForwarderOptions {
  /** Asked anew for each question: the machine's settings change while it runs. */
  readonly forwarding: () => Forwarding;
  readonly clock: Clock;
  /** Makes sockets of the network from which the servers are reached; default: this process's own. */
  readonly openSocket?: OpenSocket;
}

/** Answers the descriptor. */
export type OpenSocket = (kind: SocketKind) => number;

export type Transport = "udp" | "tcp";

/** Each has a socket of its own: with a port that nobody can guess, an answer is hard to forge (RFC 5452). */
export const maxInFlight = 512;
/** A client has long given up by then, whatever resolv.conf says. */
const maxWaitMs = 15_000;

/** A question of a client, from its coming to its answer. */
interface Waiting {
  /** Ends the attempt that runs now, without an answer. */
  giveUp: () => void;
  isAbandoned: boolean;
}

/** A question as it was sent to a name server, and is not answered yet. */
interface Asked {
  readonly message: Buffer;
  /** Where it was sent from; undefined until it was. */
  readonly localPort: () => number | undefined;
}

export class Forwarder {
  readonly #options: ForwarderOptions;
  #preferred: NameServer | undefined;
  #isClosed = false;
  /** The oldest first. */
  readonly #waiting = new Set<Waiting>();
  /** By its number. */
  readonly #asked = new Map<number, Asked>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /**
   * Undefined when no server has answered in time. Of too many questions the oldest has no answer: those that nobody
   * answers, however many, keep no other one out.
   */
  async ask(query: Buffer, transport: Transport): Promise<Buffer | undefined> {
    for (const oldest of this.#waiting) {
      if (this.#waiting.size < maxInFlight) break;
      this.#abandon(oldest);
    }
    const waiting: Waiting = { giveUp: () => undefined, isAbandoned: false };
    this.#waiting.add(waiting);
    try {
      return await this.#askInTurn(query, transport, waiting);
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Nobody is asked from now on; questions that wait have no answer. */
  close(): void {
    this.#isClosed = true;
    for (const waiting of this.#waiting) this.#abandon(waiting);
  }

  /** Whether the query is one that was sent from here: a name server of the machine is this one, or leads to it. */
  hasAsked(query: Buffer, remotePort: number): boolean {
    const asked = this.#asked.get(query.readUInt16BE(0));
    return asked !== undefined && asked.localPort() === remotePort && asked.message.equals(query);
  }

  #abandon(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    waiting.isAbandoned = true;
    waiting.giveUp();
  }

  /**
   * A server that says that it cannot or will not answer gives way to the next, as in the C library; if none does
   * better, the client is told what the first of them has said.
   */
  async #askInTurn(query: Buffer, transport: Transport, waiting: Waiting): Promise<Buffer | undefined> {
    const { clock } = this.#options;
    const { servers, timeoutMs, attempts } = this.#options.forwarding();
    const first = Math.max(
      servers.findIndex((server) => isSameServer(server, this.#preferred)),
      0,
    );
    const deadlineMs = clock.nowMs() + maxWaitMs;
    const refusing = new Set<NameServer>();
    let refusal: Buffer | undefined;
    for (let attempt = 0; attempt < attempts * servers.length; attempt += 1) {
      const server = servers[(first + attempt) % servers.length]!;
      const leftMs = Math.min(timeoutMs, deadlineMs - clock.nowMs());
      if (leftMs <= 0 || waiting.isAbandoned || this.#isClosed) break;
      if (refusing.has(server)) continue;
      const answer = await this.#askOne(server, { query, transport, waiting, timeoutMs: leftMs });
      if (answer === undefined) continue;
      if (!isRefusal(answer)) {
        this.#preferred = server;
        return answer;
      }
      refusing.add(server);
      refusal ??= answer;
    }
    return refusal;
  }

  #askOne(server: NameServer, { query, transport, waiting, timeoutMs }: AttemptOptions): Promise<Buffer | undefined> {
    const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
    const giveUp = (): void => resolve(undefined);
    // A number of our own: the client's may be one that others can guess.
    const message = Buffer.from(query);
    const number = this.#freeNumber();
    message.writeUInt16BE(number, 0);
    const onMessage = (answer: Buffer): void => {
      if (!isAnswerTo(answer, message)) return;
      query.copy(answer, 0, 0, 2);
      resolve(answer);
    };
    const ask = transport === "udp" ? askByDatagram : askByStream;
    const { localPort, end } = ask({ server, message, openSocket: this.#options.openSocket }, onMessage, giveUp);
    const cancel = this.#options.clock.after(timeoutMs, giveUp);
    this.#asked.set(number, { message, localPort });
    waiting.giveUp = giveUp;
    return promise.finally(() => {
      cancel();
      this.#asked.delete(number);
      end();
    });
  }

  #freeNumber(): number {
    for (;;) {
      const number = randomInt(0x1_00_00);
      if (!this.#asked.has(number)) return number;
    }
  }
}

interface AttemptOptions {
  readonly query: Buffer;
  readonly transport: Transport;
  readonly waiting: Waiting;
  readonly timeoutMs: number;
}

export function isSameServer(a: NameServer, b: NameServer | undefined): boolean {
  return a.address === b?.address && a.port === b.port;
}

interface Attempt extends Pick<Asked, "localPort"> {
  readonly end: () => void;
}

/** Before an address that Node would otherwise connect to by itself, a turn later. */
const literal = "at ";

/** Where looking up is no wait the socket is made at once, in the network that the call is in. */
const lookUpNothing = (
  host: string,
  _options: object,
  done: (error: null, address: string, family: number) => void,
): void => {
  const address = host.replace(literal, "");
  done(null, address, familyOf(address));
};

function familyOf(address: string): 4 | 6 {
  return isIPv6(address.replace(/%.*$/, "")) ? 6 : 4;
}

interface Question {
  readonly server: NameServer;
  readonly message: Buffer;
  readonly openSocket: OpenSocket | undefined;
}

type Ask = (question: Question, onMessage: (message: Buffer) => void, onFailed: () => void) => Attempt;

function socketOf(fd: number): Socket {
  return new Socket({ fd, readable: true, writable: true, manualStart: true } as SocketConstructorOpts);
}

/** Of a connected socket the kernel takes nothing that comes from elsewhere, and tells that nobody listens there. */
const askByDatagram: Ask = ({ server: { address, port }, message, openSocket }, onMessage, onFailed) => {
  const type = familyOf(address) === 6 ? "udp6" : "udp4";
  const socket: DatagramSocket = createSocket({ type, lookup: lookUpNothing });
  if (openSocket !== undefined) socket.bind({ fd: openSocket(type) });
  let isConnected = false;
  socket.on("error", onFailed);
  socket.on("message", onMessage);
  // Not as the call's own callback, which would be told of a failure, too.
  socket.on("connect", () => {
    isConnected = true;
    socket.send(message);
  });
  socket.connect(port, address);
  return { localPort: () => (isConnected ? socket.address().port : undefined), end: () => socket.close() };
};

const askByStream: Ask = ({ server: { address, port }, message, openSocket }, onMessage, onFailed) => {
  const to = { host: `${literal}${address}`, port, lookup: lookUpNothing, autoSelectFamily: false };
  const fd = openSocket?.(familyOf(address) === 6 ? "tcp6" : "tcp4");
  const socket: Socket = fd === undefined ? connect(to) : socketOf(fd).connect(to);
  socket.on("connect", () => socket.write(withLength(message)));
  const messages = new LengthPrefixed();
  socket.on("error", onFailed);
  socket.on("close", onFailed);
  socket.on("data", (chunk: Buffer) => {
    for (const each of messages.take(chunk)) onMessage(each);
  });
  return { localPort: () => socket.localPort, end: () => socket.destroy() };
};
