// The name server beside a workload (UDP and TCP): names of the mesh it knows itself, for all others it asks the
// machine's name servers. Whose questions are captured notices no difference.
import { createSocket, type RemoteInfo, type Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv6, type Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { GuardedListener } from "@tulle/listening";
import type { Counter, MetricRegistry } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import { answerQuery } from "./answer-query.ts";
import {
  type DnsAnswer,
  type DnsQuery,
  noRecords,
  readQuery,
  refuse,
  responseCode,
  writeAnswer,
} from "./dns-message.ts";
import { Forwarder, type ForwarderOptions, type NameServer, type Transport, type OpenSocket } from "./forwarder.ts";
import { LengthPrefixed, withLength } from "./length-prefixed.ts";
import type { NameTable } from "./name-table.ts";

export interface DnsAddress extends NameServer {
  /** It is left out on a machine that does not have it, such as `::1` where there is no IPv6. */
  readonly mayLack?: true;
}

export interface DnsServerOptions {
  /** Where it listens, for both transports. */
  readonly addresses: readonly DnsAddress[];
  /** Undefined until the control plane has sent them. */
  readonly names: () => NameTable | undefined;
  /** Domains that nobody else knows: a name in them that is not in the table is none. */
  readonly ownDomains: readonly string[];
  readonly forwarding: ForwarderOptions["forwarding"];
  readonly openSocket?: OpenSocket;
  readonly metrics: MetricRegistry;
  readonly clock: Clock;
}

export interface RunningDnsServer {
  /** With the real port where 0 was asked for. */
  readonly addresses: readonly NameServer[];
  close(): Promise<void>;
}

/** Connections at once; the oldest makes way for one more. */
const maxConnections = 128;
/** A question that is passed on may take 15 s (forwarder.ts). */
const connectionLifeMs = 30_000;
const maxStreamMessageBytes = 65_535;

/** Rejects when an address cannot be bound; nothing listens then. */
export async function startDnsServer(options: DnsServerOptions): Promise<RunningDnsServer> {
  const responder = new Responder(options);
  const closers: (() => Promise<void>)[] = [];
  const addresses: NameServer[] = [];
  const close = async (): Promise<void> => {
    responder.close();
    await Promise.all(closers.map((each) => each()));
  };
  try {
    for (const { address, port, mayLack } of options.addresses) {
      const listening = await listenForBoth(address, port, responder).catch((error: NodeJS.ErrnoException) => {
        if (mayLack === true && lacking.has(error.code)) return undefined;
        throw error;
      });
      if (listening === undefined) continue;
      const { datagrams, listener } = listening;
      closers.push(() => closed(datagrams));
      closers.push(() => listener.close());
      addresses.push({ address, port: datagrams.address().port });
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { addresses, close };
}

/** An address, or its whole family, that the machine does not have. */
const lacking: ReadonlySet<string | undefined> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

interface Listening {
  readonly datagrams: DatagramSocket;
  readonly listener: GuardedListener;
}

/** A port that the kernel chooses for one transport may be taken in the other: it is asked for another one then. */
const maxPortTries = 20;

async function listenForBoth(address: string, port: number, responder: Responder): Promise<Listening> {
  for (let attempt = 1; ; attempt += 1) {
    const datagrams = await listenForDatagrams(address, port, responder);
    const listener = listenForStreams(responder);
    try {
      await listener.listen(address, datagrams.address().port);
      return { datagrams, listener };
    } catch (error) {
      await closed(datagrams);
      const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      if (port !== 0 || !isTaken || attempt === maxPortTries) throw error;
    }
  }
}

function closed(socket: DatagramSocket): Promise<void> {
  return new Promise((resolve) => socket.close(() => resolve()));
}

async function listenForDatagrams(address: string, port: number, responder: Responder): Promise<DatagramSocket> {
  const socket = createSocket({ type: isIPv6(address) ? "udp6" : "udp4", ipv6Only: isIPv6(address) });
  socket.on("message", (message: Buffer, { port: remotePort, address: remote }: RemoteInfo) => {
    // Who has the right to raw sockets can name a port to which nothing can be sent.
    if (remotePort === 0) return;
    responder.respond(message, { transport: "udp", remotePort }, (answer) =>
      socket.send(answer, remotePort, remote, () => undefined),
    );
  });
  socket.bind(port, address);
  try {
    await once(socket, "listening");
  } catch (error) {
    await closed(socket);
    throw error;
  }
  // Such as an ICMP message to an answer that nobody waited for.
  socket.on("error", () => undefined);
  return socket;
}

function listenForStreams(responder: Responder): GuardedListener {
  return new GuardedListener({
    maxNewcomers: maxConnections,
    newcomerLifeMs: connectionLifeMs,
    refuses: () => false,
    accept: (socket) => void answerStream(socket, responder),
  });
}

/** One question after the other: a client that sends many waits for their answers, and fills no memory. */
async function answerStream(socket: Socket, responder: Responder): Promise<void> {
  const origin: Origin = { transport: "tcp", remotePort: socket.remotePort ?? 0 };
  const messages = new LengthPrefixed();
  const answers = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      for (const message of messages.take(chunk)) {
        const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
        responder.respond(message, origin, resolve, () => resolve(undefined));
        const answer = await promise;
        if (answer === undefined) return;
        yield withLength(answer);
      }
    }
  };
  // It may go at any time.
  await pipeline(socket, answers, socket).catch(() => undefined);
  socket.destroy();
}

/** Where a question comes from. */
interface Origin {
  readonly transport: Transport;
  readonly remotePort: number;
}

class Responder {
  readonly #options: DnsServerOptions;
  readonly #forwarder: Forwarder;
  readonly #counters: Readonly<Record<"requests" | "upstreamRequests" | "failures" | "loops", Counter>>;
  #turn = 0;

  constructor(options: DnsServerOptions) {
    this.#options = options;
    this.#forwarder = new Forwarder(options);
    const counter = (name: string, help: string): Counter => options.metrics.counter({ name, help });
    this.#counters = {
      requests: counter("dns_requests_total", "DNS questions of the workload."),
      upstreamRequests: counter(
        "dns_upstream_requests_total",
        "DNS questions passed on to the machine's name servers.",
      ),
      failures: counter("dns_upstream_failures_total", "Of these, questions that no name server has answered in time."),
      loops: counter(
        "dns_upstream_loops_total",
        "Questions passed on that came back here: a name server of the machine is this one, or leads to it.",
      ),
    };
  }

  close(): void {
    this.#forwarder.close();
  }

  /** `ignore`: there is nothing to answer. */
  respond(
    message: Buffer,
    { transport, remotePort }: Origin,
    answer: (bytes: Buffer) => void,
    ignore?: () => void,
  ): void {
    const read = readQuery(message);
    if (read === "noQuery") {
      ignore?.();
      return;
    }
    if (this.#forwarder.hasAsked(message, remotePort)) {
      this.#counters.loops.increment();
      answer(refusalOf(message, responseCode.serverFailure));
      return;
    }
    this.#counters.requests.increment();
    if (read === "malformed") {
      answer(refuse(message, responseCode.formatError));
      return;
    }
    if (read !== "foreign" && read.kind === "transfer") {
      answer(refusalOf(message, responseCode.refused));
      return;
    }
    const query = read === "foreign" ? undefined : read.query;
    const known = query && this.#known(query);
    if (query === undefined || known === undefined) {
      void this.#passOn(message, transport).then((bytes) => (bytes === undefined ? ignore?.() : answer(bytes)));
      return;
    }
    const limitBytes = transport === "udp" ? query.maxDatagramBytes : maxStreamMessageBytes;
    answer(writeAnswer(message, query, known, limitBytes));
  }

  #known(query: DnsQuery): DnsAnswer | undefined {
    const names = this.#options.names();
    // It is soon known what is of the mesh; until then "there is no such name" would be a lie that clients keep.
    if (names === undefined) return { code: responseCode.serverFailure, answers: noRecords };
    this.#turn = (this.#turn + 1) & 0xff_ff;
    const answer = answerQuery(query, { names, ownDomains: this.#options.ownDomains, turn: this.#turn });
    if (answer === undefined || (query.ednsVersion ?? 0) === 0) return answer;
    return { code: responseCode.badVersion, answers: noRecords };
  }

  /** Undefined where the server was closed meanwhile, and its sockets with it. */
  async #passOn(message: Buffer, transport: Transport): Promise<Buffer | undefined> {
    this.#counters.upstreamRequests.increment();
    const answer = await this.#forwarder.ask(message, transport);
    if (this.#forwarder.isClosed) return undefined;
    if (answer !== undefined) return answer;
    this.#counters.failures.increment();
    return refusalOf(message, responseCode.serverFailure);
  }
}

/** With the question, where there is one: resolvers pass over answers without. */
function refusalOf(message: Buffer, code: number): Buffer {
  const read = readQuery(message);
  if (typeof read === "string") return refuse(message, code);
  return writeAnswer(message, read.query, { code, answers: noRecords }, read.query.maxDatagramBytes);
}
