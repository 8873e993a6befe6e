// Batches that leave as messages of one long gRPC call, which nobody answers (Envoy: access log services). The call is
// opened by the first batch and, after an end, by the next one; one batch is under way at a time. Whether a message was
// taken nothing says: a batch counts as sent once the call has outlived it by a while.
import { backOffMs } from "@tulle/timing";
import { Trouble } from "@tulle/telemetry";
import type { Cluster } from "../cluster/cluster.ts";
import type { GrpcTarget } from "../http/grpc-target.ts";
import type { Slot } from "../runtime/slot.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import { type GrpcStream, grpcStreamOpener } from "./grpc-stream.ts";

export interface GrpcStreamCollector {
  readonly protocol: "grpc_stream";
  readonly cluster: Slot<Cluster>;
  readonly target: GrpcTarget;
  /** `/package.Service/Method` */
  readonly path: string;
  /** Fields that the first message of each call has before its own. */
  readonly opening: Uint8Array;
}

/** Once each; `onReady`: the next one may come. */
export interface BatchEvents {
  onReady(): void;
  onOutcome(outcome: "sent" | "failed"): void;
}

/** A server that takes nothing for so long is given up, and so is one that does not come about. */
const stallTimeoutMs = 10_000;
/** A call that ends this soon after a batch may have ended because of it, and has not taken it. */
const settleMs = 1000;
/** Between two calls, so that a server that is down, or refuses, is not asked for each batch. */
const waits = { baseMs: 500, maxMs: 10_000 };
/** What a service answers is not read. */
const maxResponseBytes = 64 * 1024;
const keepAlive = { intervalMs: 5 * 60_000, jitterPercent: 0, timeoutMs: 60_000 };

interface Batch {
  readonly body: Uint8Array;
  readonly events: BatchEvents;
  writtenMs: number;
}

/**
 * - `closed`: there is no call. A batch that comes before `#notBeforeMs` waits.
 * - `opening`: the batch waits for the server.
 * - `open`: a batch is written at once. While the server takes nothing, the next one waits.
 */
type State = "closed" | "opening" | "open";

export class GrpcStreamSender {
  readonly #collector: GrpcStreamCollector;
  readonly #dataPath: DataPath;
  readonly #open: ReturnType<typeof grpcStreamOpener>;
  readonly #trouble: Trouble;
  #state: State = "closed";
  #stream: GrpcStream | undefined = undefined;
  #isFirstMessage = true;
  /** It is to be written, or waits for the server to take it. */
  #batch: Batch | undefined = undefined;
  /** Written, the oldest first, and not yet counted. */
  readonly #written: Batch[] = [];
  /** Who waits for the end of the call, after `finish`. */
  #onFinished: (() => void) | undefined = undefined;
  #failures = 0;
  #notBeforeMs = -Infinity;
  readonly #waitTimer = new CallbackTimer(() => this.#start());
  readonly #stallTimer = new CallbackTimer(() => this.#fail("it takes nothing"));
  readonly #settleTimer = new CallbackTimer(() => this.#settle());

  constructor(collector: GrpcStreamCollector, dataPath: DataPath) {
    const { cluster, target, path } = collector;
    this.#collector = collector;
    this.#dataPath = dataPath;
    this.#open = grpcStreamOpener(cluster, target, path, dataPath, { maxMessageBytes: maxResponseBytes, keepAlive });
    this.#trouble = new Trouble(dataPath.upstreamLog);
  }

  /** Not before `onReady` of the batch before. */
  send(body: Uint8Array, events: BatchEvents): void {
    const { timers, turn } = this.#dataPath;
    this.#batch = { body, events, writtenMs: -1 };
    if (this.#state === "open") return this.#write(this.#batch);
    const waitMs = this.#notBeforeMs - turn.nowMs;
    if (waitMs > 0) timers.arm(this.#waitTimer, waitMs, turn.nowMs);
    else this.#start();
  }

  /** Ends the call as one that has said all. */
  close(): void {
    this.#stream?.end();
  }

  /** As `close`; resolves when the server, which reads all before it, has ended the call. */
  async finish(): Promise<void> {
    if (this.#state !== "open") return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onFinished = resolve;
    this.close();
    await promise;
  }

  #start(): void {
    const { timers, turn } = this.#dataPath;
    this.#state = "opening";
    this.#isFirstMessage = true;
    timers.arm(this.#stallTimer, stallTimeoutMs, turn.nowMs);
    this.#stream = this.#open({
      onOpen: () => this.#onOpen(),
      onMessage: () => undefined,
      onDrained: () => this.#onTaken(),
      onEnd: (reason, status) => this.#onEnd(reason, status),
    });
  }

  #onEnd(reason: string, status: string | undefined): void {
    // After `finish` it has read all, and says that it is well.
    if (this.#onFinished !== undefined && status === "0") {
      for (const { events } of this.#written.splice(0)) events.onOutcome("sent");
    }
    this.#fail(reason);
  }

  #onOpen(): void {
    this.#state = "open";
    if (this.#batch !== undefined) this.#write(this.#batch);
  }

  #write(batch: Batch): void {
    const { timers, turn } = this.#dataPath;
    const stream = this.#stream!;
    const isFirst = this.#isFirstMessage;
    this.#isFirstMessage = false;
    batch.writtenMs = turn.nowMs;
    this.#written.push(batch);
    stream.write(isFirst ? Buffer.concat([this.#collector.opening, batch.body]) : batch.body);
    // Writing may have shown that the connection is gone.
    if (this.#batch !== batch) return;
    if (!stream.isOverHighWatermark()) return this.#onTaken();
    timers.arm(this.#stallTimer, stallTimeoutMs, turn.nowMs);
  }

  #onTaken(): void {
    const batch = this.#batch;
    const { timers, turn } = this.#dataPath;
    timers.disarm(this.#stallTimer);
    if (batch === undefined) return;
    this.#batch = undefined;
    if (!this.#settleTimer.armed) timers.arm(this.#settleTimer, settleMs, turn.nowMs);
    batch.events.onReady();
  }

  #settle(): void {
    const { timers, turn } = this.#dataPath;
    const until = this.#written.findIndex((batch) => batch === this.#batch || batch.writtenMs > turn.nowMs - settleMs);
    const settled = this.#written.splice(0, until < 0 ? this.#written.length : until);
    if (settled.length > 0) {
      this.#failures = 0;
      this.#trouble.end("access logs arrive again", { cluster: this.#collector.cluster.name });
    }
    if (this.#written.length > 0) timers.arm(this.#settleTimer, settleMs, turn.nowMs);
    for (const { events } of settled) events.onOutcome("sent");
  }

  #fail(reason: string): void {
    const { timers, turn, random } = this.#dataPath;
    const { cluster } = this.#collector;
    const waiting = this.#batch;
    const lost = this.#written.splice(0);
    if (waiting !== undefined && !lost.includes(waiting)) lost.push(waiting);
    this.#batch = undefined;
    this.#stream?.close();
    this.#stream = undefined;
    this.#state = "closed";
    timers.disarm(this.#stallTimer);
    timers.disarm(this.#settleTimer);
    this.#notBeforeMs = turn.nowMs + backOffMs(waits, this.#failures, random);
    this.#failures += 1;
    if (lost.length > 0) this.#trouble.begin("access logs are lost", { cluster: cluster.name, reason });
    for (const { events } of lost) events.onOutcome("failed");
    waiting?.events.onReady();
    this.#onFinished?.();
  }
}
