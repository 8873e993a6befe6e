// OpenTelemetry: W3C's trace context, spans as protobuf (Envoy: extensions/tracers/opentelemetry).
import {
  newSpanId,
  newTraceId,
  parseTraceParent,
  passedTraceState,
  type ProtobufWriter,
  traceParentText,
  itemField,
  writeAttribute,
} from "@tulle/telemetry";
import type { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import type { BatchExporter } from "../upstream/batch-exporter.ts";
import { ActiveSpan, type SpanHead, type SpanKind } from "./active-span.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { Sampler } from "./samplers.ts";
import { ShortAttributes } from "./short-attributes.ts";
import { spanText } from "./span-text.ts";
import type { Tracer } from "./tracer.ts";

/** opentelemetry.proto.trace.v1.Span */
const fields = {
  traceId: 1,
  spanId: 2,
  traceState: 3,
  parentSpanId: 4,
  name: 5,
  kind: 6,
  start: 7,
  end: 8,
  attributes: 9,
  events: 11,
  status: 15,
} as const;
const kinds: Readonly<Record<SpanKind, number>> = { server: 2, client: 3 };
const statusError = 2;

/** What another says, is none of the values of the attribute (semantic conventions, `http.request.method`). */
const knownMethods: ReadonlySet<string> = new Set([
  "CONNECT",
  "DELETE",
  "GET",
  "HEAD",
  "OPTIONS",
  "PATCH",
  "POST",
  "PUT",
  "TRACE",
]);

export class OtlpTracer implements Tracer {
  readonly #exporter: BatchExporter;
  readonly #sampler: Sampler | undefined;
  /** The batch itself: one span at a time is written. */
  readonly #writer: ProtobufWriter;
  readonly #attributes: ShortAttributes;
  #start = 0;
  #isClient = false;

  constructor(exporter: BatchExporter, sampler: Sampler | undefined) {
    this.#exporter = exporter;
    this.#sampler = sampler;
    this.#writer = exporter.beginItem();
    this.#attributes = new ShortAttributes(this.#writer, fields.attributes);
  }

  start({ headers }: RequestHead, _kind: SpanKind, isTraced: boolean, info: StreamInfo): ActiveSpan {
    const text = onlyValue(headers, "traceparent");
    const parent = text === undefined ? undefined : parseTraceParent(text);
    if (parent === undefined) {
      const traceId = newTraceId();
      const isSampled = isTraced && (this.#sampler?.(info, traceId, undefined) ?? true);
      return new ActiveSpan(traceId, newSpanId(), "", isSampled, undefined);
    }
    const states = headers.getJoined("tracestate");
    const traceState = states === undefined ? undefined : passedTraceState(states);
    const isSampled = isTraced && (this.#sampler?.(info, parent.traceId, parent.isSampled) ?? parent.isSampled);
    return new ActiveSpan(parent.traceId, newSpanId(), parent.spanId, isSampled, traceState);
  }

  inject({ traceId, isSampled, traceState }: ActiveSpan, headers: HeaderMap, spanId: string): void {
    headers.set("traceparent", traceParentText(traceId, spanId, isSampled));
    if (traceState !== undefined) headers.set("tracestate", traceState);
    else if (headers.has("tracestate")) headers.remove("tracestate");
  }

  nameOf({ authority }: RequestHead, isEgress: boolean): string {
    return isEgress ? `egress ${authority}` : "ingress";
  }

  begin({ traceId, traceState }: ActiveSpan, head: SpanHead): void {
    const writer = this.#exporter.beginItem();
    this.#attributes.clear();
    this.#isClient = head.kind === "client";
    this.#start = writer.beginLong(itemField);
    writer.hex(fields.traceId, traceId);
    writer.hex(fields.spanId, head.spanId);
    if (traceState !== undefined) writer.text(fields.traceState, traceState);
    if (head.parentSpanId !== "") writer.hex(fields.parentSpanId, head.parentSpanId);
    if (!writer.asciiText(fields.name, head.name)) writer.text(fields.name, spanText(head.name));
    writer.uint(fields.kind, kinds[head.kind]);
    writer.timeMs(fields.start, head.startMs);
    writer.timeMs(fields.end, head.endMs);
  }

  tag(key: string, value: string): void {
    const told = key === "http.method" && !knownMethods.has(value) ? "_OTHER" : value;
    this.#attributes.add(key, told);
  }

  typedTag(key: string, value: bigint | number | boolean): void {
    this.#attributes.flush();
    const writer = this.#writer;
    const start = writer.begin(fields.attributes);
    writer.text(1, key);
    const valueStart = writer.begin(2);
    if (typeof value === "bigint") writer.int(3, value);
    else if (typeof value === "number") writer.double(4, value);
    else writer.bool(2, value);
    writer.end(valueStart);
    writer.end(start);
  }

  event(timeMs: number, name: string, attributes: readonly (readonly [string, string])[]): void {
    this.#attributes.flush();
    const writer = this.#writer;
    const start = writer.begin(fields.events);
    writer.timeMs(1, timeMs);
    writer.text(2, name);
    for (const [key, value] of attributes) writeAttribute(writer, 3, key, spanText(value));
    writer.end(start);
  }

  end(status: number, grpcStatus: number | undefined): void {
    this.#attributes.flush();
    const writer = this.#writer;
    if (this.#isFault(status, grpcStatus)) {
      const start = writer.begin(fields.status);
      writer.uint(3, statusError);
      writer.end(start);
    }
    writer.endLong(this.#start);
    this.#exporter.endItem();
  }

  /** To a client a refusal is a fault, too (OpenTelemetry's semantic conventions of HTTP and RPC spans). */
  #isFault(status: number, grpcStatus: number | undefined): boolean {
    if (status >= (this.#isClient ? 400 : 500)) return true;
    if (grpcStatus === undefined) return false;
    return this.#isClient ? grpcStatus !== 0 : grpcFaults.has(grpcStatus);
  }
}

/** Of the host: unknown, deadline exceeded, unimplemented, internal, unavailable, data loss (semantic conventions). */
const grpcFaults: ReadonlySet<number> = new Set([2, 4, 12, 13, 14, 15]);

/** Undefined where there is none, or more than one: they contradict each other (Trace Context §3.2.1). */
export function onlyValue({ entries }: HeaderMap, name: string): string | undefined {
  let value: string | undefined;
  for (let index = 0; index < entries.length; index += 2) {
    if (entries[index] !== name) continue;
    if (value !== undefined) return undefined;
    value = entries[index + 1];
  }
  return value;
}
