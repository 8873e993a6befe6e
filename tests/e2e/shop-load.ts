// People and programs that use the shop while something happens to it: so many requests a second, over connections that
// are kept and over new ones, with and without TLS. The load is open: what a busy machine could not send in its time is
// sent later. Where it falls behind for good the pace is eased, and told: how quick a machine is decides no test. What
// every request got is counted.
import { readFile } from "node:fs/promises";
import { Agent, request, type RequestOptions } from "node:http";
import { Agent as SecureAgent, request as requestSecurely } from "node:https";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** A shop on a laptop, or on a cluster. */
export interface LoadedShop {
  /** Addresses, asked at random; this machine's own when missing. */
  readonly hosts?: readonly string[];
  readonly port: number;
  readonly securePort: number;
  /** Whoever vouches for what its gateway shows. */
  readonly rootFile: string;
}

export interface LoadOptions {
  readonly seed: number;
  /** To begin with; see `caughtUp`. */
  readonly requestsPerSecond: number;
  /**
   * A machine that cannot keep the pace has this many requests on their way at most; the others wait for their turn.
   */
  readonly maxInFlight: number;
  /** How long requests come at least, however soon the end is asked for. */
  readonly minSeconds: number;
  /** A request that has no answer by then has failed. */
  readonly timeoutMs: number;
}

export interface FailedRequest {
  readonly index: number;
  readonly host: string;
  readonly target: string;
  readonly kept: boolean;
  readonly secure: boolean;
  /** Status and body, or the error. */
  readonly what: string;
  /** Milliseconds since the load began; of the connection undefined where none came about. */
  readonly connectedAtMs: number | undefined;
  readonly sentAtMs: number;
  readonly endedAtMs: number;
}

export interface LoadResult {
  /** How long requests came, in whole seconds. */
  readonly seconds: number;
  /** All were sent, and all have ended. */
  readonly requests: number;
  readonly failed: readonly FailedRequest[];
  /** When the last had ended, since the load began. */
  readonly endedAtMs: number;
  /** What the pace came to over the whole time, as asked for or as it was eased. */
  readonly offered: number;
  /** The pace at the end. */
  readonly requestsPerSecond: number;
  /** Requests whose time had come and that were not sent yet, at the worst moment. */
  readonly mostBehind: number;
  /** From the moment at which each was due to its end, the shortest first: what waited to be sent waited, too. */
  readonly tookMs: readonly number[];
}

const pollMs = 5;
/** The load keeps its pace while no more wait to be sent than come in this time. */
const keptPaceMs = 100;
/** A pace that the load does not come back to in this time is eased. */
const catchUpMs = 15_000;
/** By this much. */
const easing = 2 / 3;
/** Less than this share of what was asked for is no load. */
const leastShareOfPace = 1 / 8;
/** Without any answer for this long, requests do not wait for each other: they hang. */
const hangingMs = 500;

/** From `sinceMs` on, when `sent` had been sent, so many are due a second. */
interface Pace {
  readonly requestsPerSecond: number;
  readonly sinceMs: number;
  readonly sent: number;
}

interface Outcome {
  /** Status and body, or the error. */
  readonly answer: string;
  readonly connectedAtMs: number | undefined;
}

const targets: readonly { readonly target: string; readonly contains: string }[] = [
  { target: "/api/catalog", contains: '"id"' },
  { target: "/api/catalog/items/1", contains: '"id"' },
  { target: "/api/v1/products", contains: '"id"' },
  { target: "/productpage", contains: "Lighthouse Glasses" },
];

/** Of random numbers from 0 to 1: the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class ShopLoad {
  readonly #shop: LoadedShop;
  readonly #options: LoadOptions;
  readonly #random: () => number;
  readonly #ca: Buffer;
  // First in, first out: no connection lies idle for long.
  readonly #kept: Agent;
  readonly #keptSecure: SecureAgent;
  readonly #failed: FailedRequest[] = [];
  readonly #beganAtMs = performance.now();
  readonly #ended: Promise<number>;
  readonly #connectedAtMs = new WeakMap<Socket, number>();
  #pace: Pace;
  #sent = 0;
  #inFlight = 0;
  #answered = 0;
  #mostBehind = 0;
  readonly #tookMs: number[] = [];
  /** How long requests come, once that is known. */
  #seconds: number | undefined;

  private constructor(shop: LoadedShop, options: LoadOptions, ca: Buffer) {
    this.#shop = shop;
    this.#options = options;
    this.#ca = ca;
    this.#random = seededRandom(options.seed);
    this.#pace = { requestsPerSecond: options.requestsPerSecond, sinceMs: 0, sent: 0 };
    const { maxInFlight } = options;
    this.#kept = new Agent({ keepAlive: true, maxSockets: Math.ceil(maxInFlight / 2), scheduling: "fifo" });
    this.#keptSecure = new SecureAgent({ keepAlive: true, maxSockets: Math.ceil(maxInFlight / 6), scheduling: "fifo" });
    this.#ended = this.#run();
  }

  static async begin(shop: LoadedShop, options: LoadOptions): Promise<ShopLoad> {
    return new ShopLoad(shop, options, await readFile(shop.rootFile));
  }

  get sent(): number {
    return this.#sent;
  }

  get failed(): readonly FailedRequest[] {
    return this.#failed;
  }

  /** Milliseconds since the load began. */
  get nowMs(): number {
    return performance.now() - this.#beganAtMs;
  }

  /** The end was asked for. */
  get isEnding(): boolean {
    return this.#seconds !== undefined;
  }

  /** Resolves when so many more have been sent, or none can be: all on their way hang, or the end was asked for. */
  async after(requests: number): Promise<void> {
    const until = this.#sent + requests;
    for (let answered = this.#answered, fullForMs = 0; this.#sent < until && fullForMs < hangingMs && !this.isEnding;) {
      await pause(pollMs);
      const isStuck = this.#inFlight === this.#options.maxInFlight && answered === this.#answered;
      fullForMs = isStuck ? fullForMs + pollMs : 0;
      answered = this.#answered;
    }
  }

  /**
   * Resolves when the load keeps its pace: what could not be sent in its time is sent. The pace is eased where it is
   * beyond the machine. @throws where the machine carries next to nothing
   */
  async caughtUp(): Promise<void> {
    for (let tryUntilMs = this.nowMs + catchUpMs; !this.#keepsPace();) {
      await pause(pollMs);
      if (this.nowMs < tryUntilMs) continue;
      this.#ease();
      tryUntilMs = this.nowMs + catchUpMs;
    }
  }

  #keepsPace(): boolean {
    return this.#due() - this.#sent <= (this.#pace.requestsPerSecond * keptPaceMs) / 1000;
  }

  #ease(): void {
    const before = this.#pace.requestsPerSecond;
    const requestsPerSecond = Math.floor(before * easing);
    if (requestsPerSecond < this.#options.requestsPerSecond * leastShareOfPace)
      throw new Error(
        `the shop answers less than ${before} requests a second: ${this.#sent} of ${this.#due()} are sent`,
      );
    this.#pace = { requestsPerSecond, sinceMs: this.nowMs, sent: this.#sent };
  }

  /**
   * No more requests come after the second that has begun, nor before the least time; resolves when all are sent and
   * have ended.
   */
  async end(): Promise<LoadResult> {
    this.#seconds ??= Math.max(this.#options.minSeconds, Math.ceil(this.nowMs / 1000));
    const endedAtMs = await this.#ended;
    this.#kept.destroy();
    this.#keptSecure.destroy();
    return {
      seconds: this.#seconds,
      requests: this.#sent,
      failed: this.#failed,
      endedAtMs,
      offered: this.#due(),
      requestsPerSecond: this.#pace.requestsPerSecond,
      mostBehind: this.#mostBehind,
      tookMs: this.#tookMs.sort((a, b) => a - b),
    };
  }

  /** Requests whose time has come. */
  #due(): number {
    const { requestsPerSecond, sinceMs, sent } = this.#pace;
    const nowMs = Math.min(this.nowMs, (this.#seconds ?? Infinity) * 1000);
    return sent + Math.floor((Math.max(0, nowMs - sinceMs) * requestsPerSecond) / 1000);
  }

  async #run(): Promise<number> {
    const { maxInFlight } = this.#options;
    while (this.#seconds === undefined || this.nowMs < this.#seconds * 1000 || this.#sent < this.#due()) {
      const due = this.#due();
      while (this.#sent < due && this.#inFlight < maxInFlight) this.#send();
      this.#mostBehind = Math.max(this.#mostBehind, due - this.#sent);
      // Requests per second are what this is about; nothing is waited for.
      await pause(4);
    }
    while (this.#inFlight > 0) await pause(4);
    return this.nowMs;
  }

  #send(): void {
    const random = this.#random;
    const { target, contains } = targets[Math.floor(random() * targets.length)]!;
    const secure = random() < 0.1;
    const kept = random() < 0.8;
    const index = this.#sent;
    const { requestsPerSecond, sinceMs, sent } = this.#pace;
    const dueAtMs = sinceMs + ((index - sent) * 1000) / requestsPerSecond;
    const { hosts = ["127.0.0.1"] } = this.#shop;
    const host = hosts.length === 1 ? hosts[0]! : hosts[Math.floor(random() * hosts.length)]!;
    const sentAtMs = this.nowMs;
    this.#sent += 1;
    this.#inFlight += 1;
    void this.#ask(host, target, secure, kept).then(({ answer, connectedAtMs }) => {
      this.#inFlight -= 1;
      this.#answered += 1;
      this.#tookMs.push(this.nowMs - dueAtMs);
      if (answer.startsWith("200 ") && answer.includes(contains)) return;
      const what = answer.slice(0, 200);
      this.#failed.push({ index, host, target, kept, secure, what, connectedAtMs, sentAtMs, endedAtMs: this.nowMs });
    });
  }

  /** Status and body, or the error; never rejects. */
  #ask(host: string, path: string, secure: boolean, kept: boolean): Promise<Outcome> {
    const { promise, resolve: settle } = Promise.withResolvers<Outcome>();
    let connectedAtMs: number | undefined;
    const resolve = (answer: string): void => settle({ answer, connectedAtMs });
    const { timeoutMs } = this.#options;
    const shared: RequestOptions = { host, path, signal: AbortSignal.timeout(timeoutMs) };
    const outgoing = secure
      ? requestSecurely({
          ...shared,
          port: this.#shop.securePort,
          servername: "localhost",
          ca: this.#ca,
          agent: kept ? this.#keptSecure : false,
        })
      : request({ ...shared, port: this.#shop.port, agent: kept ? this.#kept : false });
    outgoing.once("socket", (socket) => {
      connectedAtMs = this.#connectedAtMs.get(socket);
      const onConnected = (): void => {
        connectedAtMs = this.nowMs;
        this.#connectedAtMs.set(socket, connectedAtMs);
      };
      if (connectedAtMs === undefined) socket.once("connect", onConnected);
    });
    outgoing.once("response", (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (body += chunk));
      response.once("error", (error) => resolve(`${response.statusCode}, then ${error.message}`));
      response.once("end", () => resolve(`${response.statusCode} ${body}`));
    });
    outgoing.once("error", (error: NodeJS.ErrnoException) => {
      resolve(`${error.code ?? error.message}${outgoing.reusedSocket ? " on a kept connection" : ""}`);
    });
    outgoing.end();
    return promise;
  }
}

/** For messages: how often each outcome came, and the first of them. */
export function describeFailures({ requests, failed }: Pick<LoadResult, "requests" | "failed">): string {
  const counts = new Map<string, number>();
  for (const { what } of failed) counts.set(what, (counts.get(what) ?? 0) + 1);
  const lines = [...counts].map(([what, count]) => `${count} × ${what}`);
  return [`${failed.length} of ${requests} requests failed`, ...lines, JSON.stringify(failed.slice(0, 5))].join("\n");
}

/** For messages: what the load came to. */
export function describePace({ seconds, requests, endedAtMs, mostBehind, tookMs, ...load }: LoadResult): string {
  const perSecond = Math.round((requests * 1000) / endedAtMs);
  const pace = `${requests} requests for ${seconds} s, ended after ${(endedAtMs / 1000).toFixed(1)} s: ${perSecond} a second`;
  const within = [50, 99, 100].map((percent) => {
    const rank = Math.max(0, Math.ceil((tookMs.length * percent) / 100) - 1);
    return `${percent} % within ${Math.round(tookMs[rank] ?? 0)} ms`;
  });
  return `${pace}, ${load.requestsPerSecond} offered at the end; ${mostBehind} behind at most; ${within.join(", ")} of when they were due`;
}
