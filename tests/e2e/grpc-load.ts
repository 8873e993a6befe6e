// gRPC beside the HTTP/1.1 of shop-load.ts: so many unary calls a second through the gateway, and streams that stay
// open, on which every question is answered in its turn. What each call got is counted.
import { setTimeout as pause } from "node:timers/promises";
import { type ClientDuplexStream, Client, credentials, Metadata, status, type StatusObject } from "@grpc/grpc-js";
import { items } from "../../samples/shop/catalog/items.ts";
import { catalogService } from "../../samples/shop/catalog/protocol.ts";
import type { ShopInstance } from "./shop-instance.ts";
import { seededRandom } from "./shop-load.ts";

interface GrpcLoadOptions {
  readonly seed: number;
  readonly unaryPerSecond: number;
  readonly streams: number;
  /** Of each stream. */
  readonly questionsPerSecond: number;
  /** A call that has no answer by then has failed. */
  readonly timeoutMs: number;
}

interface FailedCall {
  /** Status and details, or what was wrong with the answer. */
  readonly what: string;
  readonly isStream: boolean;
  /** Milliseconds since the load began. */
  readonly sentAtMs: number;
  readonly endedAtMs: number;
}

interface GrpcLoadResult {
  readonly unary: number;
  readonly answersOfStreams: number;
  /** When streams ended with UNAVAILABLE, by which gRPC says that they may be begun again, as they were. */
  readonly begunAgainAtMs: readonly number[];
  readonly failed: readonly FailedCall[];
}

interface Question {
  readonly id: number;
}
type Answer = (typeof items)[number];

/** The gateway leads calls of the catalog to its gRPC port. */
export const catalogAtGateway = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: catalog-by-grpc, namespace: shop }
spec:
  hosts: ["*"]
  gateways: [shop-gateway]
  http:
    - match: [{ uri: { prefix: /shop.Catalog/ } }]
      route: [{ destination: { host: catalog, port: { number: 9090 } } }]
`;

const pollMs = 10;
const clientCount = 4;

export class GrpcLoad {
  readonly #options: GrpcLoadOptions;
  readonly #random: () => number;
  readonly #clients: readonly Client[];
  readonly #failed: FailedCall[] = [];
  readonly #beganAtMs = performance.now();
  readonly #work: Promise<unknown>;
  #unary = 0;
  #inFlight = 0;
  #answersOfStreams = 0;
  readonly #begunAgainAtMs: number[] = [];
  #isEnding = false;

  private constructor(port: number, options: GrpcLoadOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
    // Connections of their own, as several programs have; those of streams see less of each other's ends.
    this.#clients = Array.from(
      { length: clientCount },
      () => new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 }),
    );
    const streams = Array.from({ length: options.streams }, (_, index) => this.#keepAsking(index));
    this.#work = Promise.all([this.#callUnary(), ...streams]);
  }

  static begin(shop: ShopInstance, options: GrpcLoadOptions): GrpcLoad {
    return new GrpcLoad(shop.port, options);
  }

  get #nowMs(): number {
    return performance.now() - this.#beganAtMs;
  }

  /** No more calls come; resolves when all have ended. */
  async end(): Promise<GrpcLoadResult> {
    this.#isEnding = true;
    await this.#work;
    for (const client of this.#clients) client.close();
    return {
      unary: this.#unary,
      answersOfStreams: this.#answersOfStreams,
      begunAgainAtMs: this.#begunAgainAtMs,
      failed: this.#failed,
    };
  }

  #anyId(): number {
    return 1 + Math.floor(this.#random() * items.length);
  }

  #fail(what: string, isStream: boolean, sentAtMs: number): void {
    this.#failed.push({ what, isStream, sentAtMs, endedAtMs: this.#nowMs });
  }

  async #callUnary(): Promise<void> {
    while (!this.#isEnding) {
      const due = Math.floor((this.#nowMs * this.#options.unaryPerSecond) / 1000);
      while (this.#unary < due && this.#inFlight < this.#options.unaryPerSecond) this.#call();
      // Calls a second are what this is about; nothing is waited for.
      await pause(pollMs);
    }
    while (this.#inFlight > 0) await pause(pollMs);
  }

  #call(): void {
    const id = this.#anyId();
    const sentAtMs = this.#nowMs;
    const client = this.#clients[this.#unary++ % clientCount]!;
    this.#inFlight += 1;
    const { path, requestSerialize, responseDeserialize } = catalogService["GetItem"]!;
    const options = { deadline: Date.now() + this.#options.timeoutMs };
    // A connection that has ended is replaced before the call is given up.
    const metadata = new Metadata({ waitForReady: true });
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      { id },
      metadata,
      options,
      (error, answer?: Answer) => {
        this.#inFlight -= 1;
        if (error !== null) this.#fail(`${status[error.code]}: ${error.details}`, false, sentAtMs);
        else if (!isAnswerTo(id, answer)) this.#fail(`${JSON.stringify(answer)} for ${id}`, false, sentAtMs);
      },
    );
  }

  /** One stream at a time, begun again where it was given back. */
  async #keepAsking(index: number): Promise<void> {
    const { path, requestSerialize, responseDeserialize } = catalogService["GetItems"]!;
    while (!this.#isEnding) {
      const sentAtMs = this.#nowMs;
      const stream: ClientDuplexStream<Question, Answer> = this.#clients[index % clientCount]!.makeBidiStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        new Metadata({ waitForReady: true }),
      );
      const { code, details } = await this.#ask(stream, sentAtMs);
      if (code === status.UNAVAILABLE) this.#begunAgainAtMs.push(this.#nowMs);
      else if (code !== status.OK || !this.#isEnding) this.#fail(`${status[code]}: ${details}`, true, sentAtMs);
    }
  }

  /** Resolves at the stream's end. */
  async #ask(stream: ClientDuplexStream<Question, Answer>, sentAtMs: number): Promise<StatusObject> {
    const asked: number[] = [];
    let answered = 0;
    const end: { said?: StatusObject } = {};
    stream.on("data", (answer: Answer) => {
      const id = asked[answered];
      answered += 1;
      this.#answersOfStreams += 1;
      if (id === undefined || !isAnswerTo(id, answer)) {
        this.#fail(`${JSON.stringify(answer)} for question ${answered}, ${id}`, true, sentAtMs);
      }
    });
    stream.on("error", () => undefined);
    stream.on("status", (said: StatusObject) => (end.said = said));
    const { timeoutMs, questionsPerSecond } = this.#options;
    for (let atMs = this.#nowMs; end.said === undefined;) {
      if (this.#isEnding) {
        stream.end();
        break;
      }
      const due = Math.floor(((this.#nowMs - atMs) * questionsPerSecond) / 1000);
      if (due > 0) {
        atMs = this.#nowMs;
        asked.push(this.#anyId());
        stream.write({ id: asked.at(-1)! });
      }
      await pause(pollMs);
    }
    for (const untilMs = this.#nowMs + timeoutMs; end.said === undefined; await pause(pollMs)) {
      if (this.#nowMs > untilMs) stream.cancel();
    }
    const { said } = end;
    if (said.code === status.OK && answered !== asked.length) {
      this.#fail(`${answered} answers to ${asked.length} questions of a stream that ended well`, true, sentAtMs);
    }
    return said;
  }
}

/** As the catalog has it, but for what its version adds and others changed. */
function isAnswerTo(id: number, answer: Answer | undefined): boolean {
  const item = items[id - 1]!;
  return answer !== undefined && answer.id === id && answer.name === item.name && answer.color === item.color;
}

/** For messages: what the load came to, and how its calls failed. */
export function describeCalls({ unary, answersOfStreams, begunAgainAtMs, failed }: GrpcLoadResult): string {
  const counts = [...Map.groupBy(failed, ({ what }) => what)].map(([what, calls]) => `${calls.length} × ${what}`);
  const again = `${begunAgainAtMs.length} streams begun again`;
  const sum = `${unary} unary calls of gRPC, ${answersOfStreams} answers on streams, ${again}`;
  return [`${sum}, ${failed.length} failed`, ...counts, ...failed.slice(0, 5).map((each) => JSON.stringify(each))].join(
    "\n",
  );
}
