// The spans of a server itself, such as the control plane: made by hand where its work begins and ends, kept up to a
// bound, and sent off by OTLP. A collector that is away costs spans, which are counted, and nothing else.
import { type Counter } from "../metric.ts";
import { writeAttribute, writeIntAttribute } from "../otlp/otlp-message.ts";
import { ProtobufWriter } from "../otlp/protobuf-writer.ts";
import { OtlpSender } from "../otlp/otlp-sender.ts";
import { parseTraceParent, traceParentText } from "./trace-context.ts";
import { newSpanId, newTraceId } from "./trace-ids.ts";
import type { TracingSettings } from "./tracing-environment.ts";

export interface TracerLimits {
  /** Spans kept while they cannot be sent; one more is dropped. */
  readonly maxSpans: number;
  readonly maxBytes: number;
  /** Of a name or a value; more is cut off. */
  readonly maxTextCharacters: number;
  /** What the last spans may hold up the end of the process; they are dropped then. */
  readonly closeMs: number;
}

/** OpenTelemetry's of its batch processor, and bytes of our own. */
export const defaultTracerLimits: TracerLimits = {
  maxSpans: 2048,
  maxBytes: 2 * 1024 * 1024,
  maxTextCharacters: 512,
  closeMs: 1000,
};

export interface TracerStats {
  readonly sent: Counter;
  readonly dropped: Counter;
}

/** SpanKind of opentelemetry-proto, trace/v1. */
const kinds = { internal: 1, server: 2, client: 3 } as const;
const statusError = 2;

/** Fields of Span and of its messages, trace/v1. */
const fields = {
  traceId: 1,
  spanId: 2,
  parentSpanId: 4,
  name: 5,
  kind: 6,
  start: 7,
  end: 8,
  attributes: 9,
  status: 15,
};

export interface SpanStart {
  readonly kind?: keyof typeof kinds;
  /** A span of this process, or the `traceparent` of a request. */
  readonly parent?: ProcessSpan | string | undefined;
  /** When it began, by the wall clock; now, when missing. */
  readonly startMs?: number;
}

export class ProcessTracer {
  readonly #settings: TracingSettings;
  readonly #stats: TracerStats;
  readonly #limits: TracerLimits;
  readonly #sender: OtlpSender;
  readonly #spans = new ProtobufWriter();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;

  constructor(settings: TracingSettings, version: string, stats: TracerStats, limits = defaultTracerLimits) {
    this.#settings = settings;
    this.#stats = stats;
    this.#limits = limits;
    this.#sender = new OtlpSender(settings, version);
  }

  /** Undefined: this trace is not sampled. */
  start(name: string, { kind = "internal", parent, startMs = nowMs() }: SpanStart = {}): ProcessSpan | undefined {
    const { isParentBased, ratio } = this.#settings.sampler;
    const from = typeof parent === "string" ? parseTraceParent(parent) : parent;
    const traceId = from?.traceId ?? newTraceId();
    const decided = from instanceof ProcessSpan ? true : isParentBased ? from?.isSampled : undefined;
    if (!(decided ?? isWithin(ratio, traceId))) return undefined;
    return new ProcessSpan(this, { name, kind, traceId, parentId: from?.spanId, startMs });
  }

  /** Of a span alone: it has ended. */
  add(
    { name, kind, traceId, spanId, parentId, startMs }: ProcessSpan,
    attributes: SpanAttributes,
    error?: string,
  ): void {
    const { maxSpans, maxBytes, maxTextCharacters } = this.#limits;
    if (this.#count >= maxSpans || this.#spans.length >= maxBytes) {
      this.#stats.dropped.increment();
      return;
    }
    const short = (text: string): string => text.slice(0, maxTextCharacters);
    const writer = this.#spans;
    const span = writer.begin(2);
    writer.hex(fields.traceId, traceId);
    writer.hex(fields.spanId, spanId);
    if (parentId !== undefined) writer.hex(fields.parentSpanId, parentId);
    writer.text(fields.name, short(name));
    writer.uint(fields.kind, kinds[kind]);
    writer.timeMs(fields.start, startMs);
    writer.timeMs(fields.end, Math.max(nowMs(), startMs));
    for (const [key, value] of attributes) {
      if (typeof value === "number") writeIntAttribute(writer, fields.attributes, key, BigInt(Math.round(value)));
      else writeAttribute(writer, fields.attributes, key, short(value));
    }
    if (error !== undefined) {
      const status = writer.begin(fields.status);
      writer.text(2, short(error));
      writer.uint(3, statusError);
      writer.end(status);
    }
    writer.end(span);
    this.#count += 1;
    if (this.#count >= maxSpans / 4) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), this.#settings.flushIntervalMs).unref();
  }

  /** Sends what there is; what comes while a request is under way follows it. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#sending !== undefined) await this.#sending;
    if (this.#count === 0) return;
    const count = this.#count;
    this.#sending = this.#sender.send(this.#spans.written).then((isTaken) => {
      this.#sending = undefined;
      (isTaken ? this.#stats.sent : this.#stats.dropped).add(count);
    });
    this.#spans.clear();
    this.#count = 0;
    await this.#sending;
  }

  /** Sends the rest, within `closeMs`. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.#sender.close(), this.#limits.closeMs);
    await this.flush();
    clearTimeout(timer);
    this.#sender.close();
  }
}

/** Values that come from outside are the caller's to leave out: a span is read by many. */
type SpanAttributes = readonly (readonly [key: string, value: string | number])[];

export class ProcessSpan {
  readonly name: string;
  readonly kind: keyof typeof kinds;
  readonly traceId: string;
  readonly spanId = newSpanId();
  readonly parentId: string | undefined;
  readonly startMs: number;
  readonly isSampled = true;
  readonly #tracer: ProcessTracer;
  readonly #attributes: [string, string | number][] = [];
  #isEnded = false;

  constructor(tracer: ProcessTracer, started: Pick<ProcessSpan, "name" | "kind" | "traceId" | "parentId" | "startMs">) {
    this.#tracer = tracer;
    this.name = started.name;
    this.kind = started.kind;
    this.traceId = started.traceId;
    this.parentId = started.parentId;
    this.startMs = started.startMs;
  }

  /** What a request made for it carries. */
  get traceParent(): string {
    return traceParentText(this.traceId, this.spanId, true);
  }

  set(key: string, value: string | number): void {
    this.#attributes.push([key, value]);
  }

  /** `error`: what went wrong, in a word or two. */
  end(error?: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#tracer.add(this, this.#attributes, error);
  }
}

function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** OpenTelemetry's TraceIdRatioBased: by the last seven bytes, so that every process of a trace decides alike. */
function isWithin(ratio: number, traceId: string): boolean {
  return Number.parseInt(traceId.slice(18), 16) < ratio * 2 ** 56;
}
