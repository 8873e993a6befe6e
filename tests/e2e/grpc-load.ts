// gRPC beside the HTTP/1.1 of shop-load.ts, through the gateway: so many unary calls a second, streams both ways, on
// which every question is answered in its turn, and streams from the server, which stay open and are silent after their
// first message. What each call got is counted.
import { setTimeout as pause } from "node:timers/promises";
import {
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceError,
  status,
  type StatusObject,
} from "@grpc/grpc-js";
import { items } from "../../samples/shop/catalog/items.ts";
import { catalogService, healthService } from "../../samples/shop/catalog/protocol.ts";
import type { ShopInstance } from "./shop-instance.ts";
import { seededRandom } from "./shop-load.ts";

interface GrpcLoadOptions {
  readonly seed: number;
  readonly unaryPerSecond: number;
  /** Both ways. */
  readonly streams: number;
  /** Such a stream is ended then, and the next one begun; without it they stay open. */
  readonly streamLifeMs?: number;
  /** Of each such stream. */
  readonly questionsPerSecond: number;
  /** From the server: they end when somebody ends them. */
  readonly watches: number;
  /** For a unary call's answer, and for a stream's end once it is asked for. */
  readonly timeoutMs: number;
}

/** What change and chaos carry beside their requests. Streams both ways live for less than a proxy drains. */
export const mixedCalls = {
  unaryPerSecond: 20,
  streams: 4,
  streamLifeMs: 2000,
  questionsPerSecond: 5,
  timeoutMs: 60_000,
} as const;

type Method = "GetItem" | "GetItems" | "Watch";

export interface EndedCall {
  readonly method: Method;
  /** Status and details, or what was wrong with the answer. */
  readonly what: string;
  /** The head of an answer had come. */
  readonly isAnswerBegun: boolean;
  readonly begunAtMs: number;
  readonly endedAtMs: number;
}

export interface GrpcLoadResult {
  readonly unary: number;
  readonly answersOfStreams: number;
  /** Streams that ended when this side wanted it, all of their questions answered. */
  readonly streamsDone: number;
  /** Unary calls without their answer, and streams that others ended; those are begun again. */
  readonly failed: readonly EndedCall[];
}

interface WatchedCall {
  readonly begunAtMs: number;
  readonly onHead: () => void;
  readonly fail: (what: string) => void;
}

interface Question {
  readonly id: number;
}
type Answer = (typeof items)[number];

/** The gateway leads calls of the catalog to its gRPC port; unary ones are tried again as `unaryRetries` says. */
export function catalogAtGateway(unaryRetries = ""): string {
  const route = "route: [{ destination: { host: catalog, port: { number: 9090 } } }]";
  return `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: catalog-by-grpc, namespace: shop }
spec:
  hosts: ["*"]
  gateways: [shop-gateway]
  http:
    - match: [{ uri: { exact: /shop.Catalog/GetItem } }]
      ${route}
      ${unaryRetries}
    - match: [{ uri: { prefix: /shop.Catalog/ } }, { uri: { prefix: /grpc.health.v1.Health/ } }]
      ${route}
`;
}

const pollMs = 10;
const clientCount = 4;
const getItem = catalogService["GetItem"] as MethodDefinition<Question, Answer>;
const getItems = catalogService["GetItems"] as MethodDefinition<Question, Answer>;
const watch = healthService["Watch"] as MethodDefinition<object, { readonly status: string }>;

export class GrpcLoad {
  readonly #options: GrpcLoadOptions;
  readonly #random: () => number;
  readonly #clients: readonly Client[];
  readonly #failed: EndedCall[] = [];
  readonly #nowMs: () => number;
  readonly #watches = new Set<ClientReadableStream<unknown>>();
  readonly #work: Promise<unknown>;
  #unary = 0;
  #inFlight = 0;
  #answersOfStreams = 0;
  #streamsDone = 0;
  #isEnding = false;

  private constructor(port: number, options: GrpcLoadOptions, nowMs: () => number) {
    this.#options = options;
    this.#nowMs = nowMs;
    this.#random = seededRandom(options.seed);
    // Connections of their own, as several programs have; those of streams see less of each other's ends.
    this.#clients = Array.from(
      { length: clientCount },
      () => new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 }),
    );
    const streams = Array.from({ length: options.streams }, (_, index) => this.#keepAsking(index));
    const watches = Array.from({ length: options.watches }, (_, index) => this.#keepWatching(index));
    this.#work = Promise.all([this.#callUnary(), ...streams, ...watches]);
  }

  /** `nowMs` gives the times of the result. */
  static begin(shop: ShopInstance, options: GrpcLoadOptions, nowMs = (): number => performance.now()): GrpcLoad {
    return new GrpcLoad(shop.port, options, nowMs);
  }

  get failed(): readonly EndedCall[] {
    return this.#failed;
  }

  /** No more calls come; resolves when all have ended. */
  async end(): Promise<GrpcLoadResult> {
    this.#isEnding = true;
    for (const stream of this.#watches) stream.cancel();
    await this.#work;
    for (const client of this.#clients) client.close();
    return {
      unary: this.#unary,
      answersOfStreams: this.#answersOfStreams,
      streamsDone: this.#streamsDone,
      failed: this.#failed,
    };
  }

  #anyId(): number {
    return 1 + Math.floor(this.#random() * items.length);
  }

  /** For a call that begins now: to be told of its head, and of how it failed. */
  #watchCall(method: Method): WatchedCall {
    const begunAtMs = this.#nowMs();
    let isAnswerBegun = false;
    return {
      begunAtMs,
      onHead: () => (isAnswerBegun = true),
      fail: (what) => void this.#failed.push({ method, what, isAnswerBegun, begunAtMs, endedAtMs: this.#nowMs() }),
    };
  }

  async #callUnary(): Promise<void> {
    const beganAtMs = this.#nowMs();
    while (!this.#isEnding) {
      const due = Math.floor(((this.#nowMs() - beganAtMs) * this.#options.unaryPerSecond) / 1000);
      while (this.#unary < due && this.#inFlight < this.#options.unaryPerSecond) this.#call();
      // Calls a second are what this is about; nothing is waited for.
      await pause(pollMs);
    }
    while (this.#inFlight > 0) await pause(pollMs);
  }

  #call(): void {
    const id = this.#anyId();
    const client = this.#clients[this.#unary++ % clientCount]!;
    const watched = this.#watchCall("GetItem");
    this.#inFlight += 1;
    const { path, requestSerialize, responseDeserialize } = getItem;
    const options = { deadline: Date.now() + this.#options.timeoutMs };
    const onEnd = (error: ServiceError | null, answer?: Answer): void => {
      this.#inFlight -= 1;
      if (error !== null) watched.fail(textOf(error));
      else if (!isAnswerTo(id, answer)) watched.fail(`${JSON.stringify(answer)} for ${id}`);
    };
    client
      .makeUnaryRequest(path, requestSerialize, responseDeserialize, { id }, waitForReady(), options, onEnd)
      .on("metadata", watched.onHead);
  }

  /** One stream at a time. */
  async #keepAsking(index: number): Promise<void> {
    const client = this.#clients[index % clientCount]!;
    while (!this.#isEnding) await this.#ask(client);
  }

  async #ask(client: Client): Promise<void> {
    const watched = this.#watchCall("GetItems");
    const { path, requestSerialize, responseDeserialize } = getItems;
    const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, waitForReady());
    stream.on("metadata", watched.onHead);
    const asked: number[] = [];
    let answered = 0;
    stream.on("data", (answer: Answer) => {
      const id = asked[answered];
      answered += 1;
      this.#answersOfStreams += 1;
      if (id === undefined || !isAnswerTo(id, answer)) watched.fail(`${JSON.stringify(answer)} for ${id}`);
    });
    const state = { hasEnded: false };
    const ended = endOf(stream).finally(() => (state.hasEnded = true));
    const { questionsPerSecond, streamLifeMs = Infinity, timeoutMs } = this.#options;
    for (let atMs = this.#nowMs(); !state.hasEnded; await pause(pollMs)) {
      const nowMs = this.#nowMs();
      if (this.#isEnding || nowMs - watched.begunAtMs > streamLifeMs) break;
      if (nowMs - atMs < 1000 / questionsPerSecond) continue;
      atMs = nowMs;
      asked.push(this.#anyId());
      stream.write({ id: asked.at(-1)! });
    }
    const isOwnEnd = !state.hasEnded;
    stream.end();
    const giveUp = setTimeout(() => stream.cancel(), timeoutMs);
    const end = await ended;
    clearTimeout(giveUp);
    if (end.code !== status.OK || !isOwnEnd) watched.fail(textOf(end));
    else if (answered !== asked.length) watched.fail(`${answered} answers to ${asked.length} questions, and OK`);
    else this.#streamsDone += 1;
  }

  async #keepWatching(index: number): Promise<void> {
    const client = this.#clients[index % clientCount]!;
    const { path, requestSerialize, responseDeserialize } = watch;
    while (!this.#isEnding) {
      const watched = this.#watchCall("Watch");
      const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, {}, waitForReady());
      this.#watches.add(stream);
      stream.on("metadata", watched.onHead);
      stream.on("data", (answer: { readonly status: string }) => {
        if (answer.status !== "SERVING") watched.fail(JSON.stringify(answer));
      });
      const end = await endOf(stream);
      this.#watches.delete(stream);
      if (!this.#isEnding || end.code !== status.CANCELLED) watched.fail(textOf(end));
    }
  }
}

function endOf(stream: ClientReadableStream<unknown> | ClientDuplexStream<unknown, unknown>): Promise<StatusObject> {
  // The status says the same.
  stream.on("error", () => undefined);
  return new Promise((resolve) => stream.on("status", resolve));
}

/** A connection that has ended is replaced before the call is given up. */
function waitForReady(): Metadata {
  return new Metadata({ waitForReady: true });
}

function textOf({ code, details }: Pick<StatusObject, "code" | "details">): string {
  return `${status[code]}: ${details}`;
}

/** As the catalog has it, but for what its version adds and others changed. */
function isAnswerTo(id: number, answer: Answer | undefined): boolean {
  const item = items[id - 1]!;
  return answer !== undefined && answer.id === id && answer.name === item.name && answer.color === item.color;
}

/**
 * Whether the call ended since something on its way did, which its status shows: UNAVAILABLE where the application says
 * that it leaves, the gateway's connection ends, or no answer had begun; INTERNAL where a gateway that has passed on
 * the head of an answer loses its host, and resets the stream, as Envoy does.
 */
export function isCutOff({ what, isAnswerBegun }: EndedCall): boolean {
  return what.startsWith("UNAVAILABLE: ") || (isAnswerBegun && what.startsWith("INTERNAL: Received RST_STREAM "));
}

/** For messages: what the load came to, and how its calls failed. */
export function describeCalls({ unary, answersOfStreams, streamsDone, failed }: GrpcLoadResult): string {
  const counts = Map.groupBy(failed, ({ method, what }) => `${method}: ${what}`);
  return [
    `${unary} unary calls of gRPC, ${streamsDone} streams to their end, ${answersOfStreams} answers on streams, ${failed.length} failed`,
    ...[...counts].map(([what, { length }]) => `${length} × ${what}`),
  ].join("\n");
}
