// What is told in batches: spans, log records and metrics that are encoded already, kept up to a bound, and sent to a
// collector through a cluster, over gRPC or HTTP, off the request path. One batch is under way at a time, as a request
// or as a message of one long call; there is no second try. A collector that is down, slow or answers rubbish costs
// this buffer, and counters.
import { ProtobufWriter, type Counter } from "@tulle/telemetry";
import type { Cluster } from "../cluster/cluster.ts";
import type { GrpcTarget } from "../http/grpc-target.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { Slot } from "../runtime/slot.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import { sendAsyncRequest } from "./async-client.ts";
import { callGrpc } from "./grpc-client.ts";
import {
  type ExportOutcome,
  type ExportResult,
  ExportTrouble,
  lostExport,
  readOtlpAnswer,
  takenExport,
} from "./export-result.ts";
import { type GrpcStreamCollector, GrpcStreamSender } from "./grpc-stream-sender.ts";

export interface HttpCollector {
  readonly protocol: "http";
  readonly cluster: Slot<Cluster>;
  readonly scheme: "http" | "https";
  readonly authority: string;
  readonly path: string;
  /** Its content-type among them. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly timeoutMs: number;
}

export interface GrpcCollector {
  readonly protocol: "grpc";
  readonly cluster: Slot<Cluster>;
  readonly target: GrpcTarget;
  /** `/package.Service/Method` */
  readonly path: string;
  readonly timeoutMs: number;
}

export interface ExportLimits {
  /** Items at which a batch is sent before its time. */
  readonly batchItems: number;
  /** Bytes likewise; undefined: half of `maxBytes`, so that the other half can come while they are sent. */
  readonly batchBytes?: number | undefined;
  readonly flushIntervalMs: number;
  /** Items kept while a request is under way; one more is dropped. */
  readonly maxItems: number;
  readonly maxBytes: number;
}

/** Envoy's (`tracing.opentelemetry.min_flush_spans`, `flush_interval_ms`, `max_cache_size`), and bytes of our own. */
export const defaultExportLimits: ExportLimits = {
  batchItems: 512,
  flushIntervalMs: 5000,
  maxItems: 1024,
  maxBytes: 4 * 1024 * 1024,
};

/** Where a request has no time-out of its own: what hangs would keep all that comes after it. */
export const defaultExportTimeoutMs = 10_000;

/** Series under Envoy's names, where it has some. */
export interface ExportStats {
  /** Items that a collector took, and those that nobody did. */
  readonly sent: Counter;
  readonly dropped: Counter;
  readonly timerFlushed?: Counter | undefined;
  readonly outcomes?: Readonly<Partial<Record<ExportOutcome, Counter>>> | undefined;
}

export interface BatchExporterSettings {
  /** What the log calls them. */
  readonly items: "spans" | "access logs";
  readonly collector: HttpCollector | GrpcCollector | GrpcStreamCollector;
  readonly limits: ExportLimits;
  /** Items, one behind the other, to the whole request: for OTLP `otlpEnvelope`. */
  readonly envelope: (items: Buffer) => Buffer;
  readonly stats: ExportStats;
}

const maxResponseBytes = 64 * 1024;
const overflow = lostExport("failed", "more come than the collector takes");

export class BatchExporter {
  readonly #settings: BatchExporterSettings;
  readonly #dataPath: DataPath | undefined;
  /** Undefined where nothing is sent, or where the call that batches go by tells of itself. */
  readonly #trouble: ExportTrouble | undefined;
  readonly #items = new ProtobufWriter();
  /** Of those that are whole. */
  #itemBytes = 0;
  #itemCount = 0;
  #isSending = false;
  /** Who waits until nothing is left. */
  #onFinished: (() => void) | undefined = undefined;
  readonly #timer = new CallbackTimer(() => this.#onTimer());
  /** Undefined where each batch is a request. */
  readonly streamSender: GrpcStreamSender | undefined;

  /** Without a data path everything is dropped: what is compiled to be looked at sends nothing. */
  constructor(settings: BatchExporterSettings, dataPath: DataPath | undefined) {
    this.#settings = settings;
    this.#dataPath = dataPath;
    const { collector, items } = settings;
    if (dataPath === undefined) return;
    if (collector.protocol === "grpc_stream") this.streamSender = new GrpcStreamSender(collector, dataPath);
    else this.#trouble = new ExportTrouble(items, collector.cluster.name, dataPath);
  }

  /** Whether it sends by this slot, and not by one of a cluster of the same name that has gone since. */
  isTo({ cluster }: BatchExporterSettings["collector"]): boolean {
    return this.#settings.collector.cluster === cluster;
  }

  /** An item as it stands in the request, tag and length included; the bytes are copied. */
  add(item: Uint8Array): void {
    this.beginItem().raw(item);
    this.endItem();
  }

  /** Always the same: where the next item is written in its place. What `endItem` was not told of is taken back. */
  beginItem(): ProtobufWriter {
    this.#items.truncate(this.#itemBytes);
    return this.#items;
  }

  /** The item is whole. */
  endItem(): void {
    const { limits, stats } = this.#settings;
    const dataPath = this.#dataPath;
    const isFull = this.#itemCount >= limits.maxItems || this.#items.length > limits.maxBytes;
    if (dataPath === undefined || isFull) {
      this.#items.truncate(this.#itemBytes);
      stats.dropped.increment();
      this.#trouble?.onResult(overflow);
      return;
    }
    this.#itemBytes = this.#items.length;
    this.#itemCount += 1;
    if (this.#isDue()) this.flush();
    else if (!this.#timer.armed) dataPath.timers.arm(this.#timer, limits.flushIntervalMs, dataPath.turn.nowMs);
  }

  /** Sends what there is, unless a request is under way: then that follows it. */
  flush(): void {
    if (this.#isSending || this.#itemCount === 0 || this.#dataPath === undefined) return;
    const count = this.#itemCount;
    const body = this.#settings.envelope(this.beginItem().written);
    this.#items.clear();
    this.#itemBytes = 0;
    this.#itemCount = 0;
    this.#isSending = true;
    this.#dataPath.timers.disarm(this.#timer);
    this.#send(body, count, this.#dataPath);
  }

  /**
   * Sends what there is, behind what is under way, and resolves when nothing is left: each batch was taken, or lost. A
   * call that batches went by is over then. Whoever asks says how long that may take.
   */
  async finish(): Promise<void> {
    if (this.#isSending || this.#itemCount > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onFinished = resolve;
      this.flush();
      await promise;
    }
    await this.streamSender?.finish();
  }

  #isDue(): boolean {
    if (this.#onFinished !== undefined && this.#itemCount > 0) return true;
    const { batchItems, maxBytes, batchBytes = maxBytes / 2 } = this.#settings.limits;
    return this.#itemCount >= batchItems || this.#itemBytes > batchBytes;
  }

  #onTimer(): void {
    this.#settings.stats.timerFlushed?.increment();
    this.flush();
  }

  #count(outcome: ExportOutcome, count: number, rejectedItems: number): void {
    const { stats } = this.#settings;
    const lost = outcome === "sent" ? Math.min(count, rejectedItems) : count;
    stats.outcomes?.[outcome]?.increment();
    stats.sent.add(count - lost);
    stats.dropped.add(lost);
  }

  #onReady(): void {
    this.#isSending = false;
    if (this.#isDue()) this.flush();
    else if (this.#itemCount > 0 && !this.#timer.armed) {
      const { timers, turn } = this.#dataPath!;
      timers.arm(this.#timer, this.#settings.limits.flushIntervalMs, turn.nowMs);
    }
    if (!this.#isSending) this.#onFinished?.();
  }

  #send(body: Buffer, count: number, dataPath: DataPath): void {
    const { collector } = this.#settings;
    if (collector.protocol === "grpc_stream") {
      this.streamSender!.send(body, {
        onReady: () => this.#onReady(),
        onOutcome: (outcome) => this.#count(outcome, count, 0),
      });
      return;
    }
    sendToCollector(collector, body, dataPath, (result) => {
      this.#count(result.outcome, count, result.rejectedItems);
      this.#trouble?.onResult(result);
      this.#onReady();
    });
  }
}

/** One request; `onResult` is called once, at the latest after the collector's time-out. */
export function sendToCollector(
  collector: GrpcCollector | HttpCollector,
  body: Buffer,
  dataPath: DataPath,
  onResult: (result: ExportResult) => void,
): void {
  const { cluster, path } = collector;
  const timeoutMs = collector.timeoutMs > 0 ? collector.timeoutMs : defaultExportTimeoutMs;
  const options = { timeoutMs, maxResponseBytes };
  if (collector.protocol === "grpc") {
    callGrpc(cluster, collector.target, { path, message: body }, options, dataPath, (result) => {
      if (result.ok) onResult(readOtlpAnswer(result.message) ?? lostExport("failed", "the answer is none of OTLP"));
      else if (result.reason === "cluster_not_found") onResult(lostExport("no_cluster", result.reason));
      else onResult(lostExport(result.reason.startsWith("gRPC status") ? "refused" : "failed", result.reason));
    });
    return;
  }
  const { scheme, authority } = collector;
  const headers = HeaderMap.of(collector.headers);
  sendAsyncRequest(cluster, { method: "POST", scheme, authority, path, headers, body }, options, dataPath, (result) => {
    if (!result.ok) {
      onResult(lostExport(result.failure === "cluster_not_found" ? "no_cluster" : "failed", result.failure));
      return;
    }
    const { status, headers: fields, body: answer } = result.response;
    if (status < 200 || status >= 300) onResult(lostExport("refused", `status ${status}`));
    // Zipkin's collectors answer in words of their own, or not at all.
    else if (fields.get("content-type") !== "application/x-protobuf") onResult(takenExport);
    else onResult(readOtlpAnswer(answer) ?? takenExport);
  });
}

interface Forgotten {
  readonly key: string;
  readonly streamSender: GrpcStreamSender | undefined;
}

/**
 * The exporters of one worker. Equal settings share one, so that a listener that is compiled anew goes on with its
 * batch; one that nobody holds any more, and that has nothing left to send, is forgotten.
 */
export class BatchExporters {
  readonly #dataPath: DataPath | undefined;
  readonly #byKey = new Map<string, WeakRef<BatchExporter>>();
  readonly #forgotten = new FinalizationRegistry<Forgotten>(({ key, streamSender }) => {
    streamSender?.close();
    if (this.#byKey.get(key)?.deref() === undefined) this.#byKey.delete(key);
  });

  constructor(dataPath?: DataPath) {
    this.#dataPath = dataPath;
  }

  /** `key` says all that the settings are made of, but for the slot: names come back, slots do not. */
  get(key: string, settings: () => BatchExporterSettings): BatchExporter {
    const known = this.#byKey.get(key)?.deref();
    const wanted = settings();
    if (known?.isTo(wanted.collector) === true) return known;
    const made = new BatchExporter(wanted, this.#dataPath);
    this.#byKey.set(key, new WeakRef(made));
    this.#forgotten.register(made, { key, streamSender: made.streamSender });
    return made;
  }

  /** Once a listener has drained: nobody waits for the five seconds. */
  flush(): void {
    for (const exporter of this.#byKey.values()) exporter.deref()?.flush();
  }

  /** Before the end of the process: as `BatchExporter.finish`, of all. */
  async finish(): Promise<void> {
    await Promise.all(Array.from(this.#byKey.values(), async (exporter) => exporter.deref()?.finish()));
  }

  /** Ends the calls that batches went by. */
  close(): void {
    for (const exporter of this.#byKey.values()) exporter.deref()?.streamSender?.close();
  }
}
