// Zipkin: B3 headers, spans of its API's version 2 (Envoy: extensions/tracers/zipkin).
import {
  b3Text,
  type B3Context,
  newSpanId,
  newTraceId,
  parseB3,
  parseB3Headers,
  parseTraceParent,
  traceParentText,
} from "@tulle/telemetry";
import type { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import type { BatchExporter } from "../upstream/batch-exporter.ts";
import { ActiveSpan, type SpanHead, type SpanKind } from "./active-span.ts";
import { onlyValue } from "./otlp-tracer.ts";
import type { Tracer } from "./tracer.ts";
import type { ZipkinFormat } from "./zipkin-format.ts";

export interface ZipkinSettings {
  /** trace_id_128bit */
  readonly has128BitIds: boolean;
  /** shared_span_context: the server's span is the client's. */
  readonly sharesSpans: boolean;
  /** trace_context_option USE_B3_WITH_W3C_PROPAGATION */
  readonly knowsTraceParent: boolean;
}

const noContext: B3Context = { ids: undefined, decision: undefined };

export class ZipkinTracer implements Tracer {
  readonly #exporter: BatchExporter;
  readonly #settings: ZipkinSettings;
  readonly #format: ZipkinFormat;

  constructor(exporter: BatchExporter, settings: ZipkinSettings, format: ZipkinFormat) {
    this.#exporter = exporter;
    this.#settings = settings;
    this.#format = format;
  }

  start({ headers }: RequestHead, kind: SpanKind, isTraced: boolean): ActiveSpan {
    const { ids, decision } = this.#contextOf(headers);
    const isSampled = decision === undefined ? isTraced : decision !== "not_sampled";
    if (ids === undefined) {
      const traceId = this.#settings.has128BitIds ? newTraceId() : newSpanId();
      return new ActiveSpan(traceId, traceId.slice(-16), "", isSampled, undefined);
    }
    if (kind === "server" && this.#settings.sharesSpans) {
      return new ActiveSpan(ids.traceId, ids.spanId, ids.parentSpanId ?? "", isSampled, undefined);
    }
    return new ActiveSpan(ids.traceId, newSpanId(), ids.spanId, isSampled, undefined);
  }

  #contextOf(headers: HeaderMap): B3Context {
    if (headers.has("b3")) {
      const single = onlyValue(headers, "b3");
      return (single === undefined ? undefined : parseB3(single)) ?? noContext;
    }
    const several = parseB3Headers({
      traceId: headers.get("x-b3-traceid"),
      spanId: headers.get("x-b3-spanid"),
      parentSpanId: headers.get("x-b3-parentspanid"),
      sampled: headers.get("x-b3-sampled"),
      flags: headers.get("x-b3-flags"),
    });
    if (several?.ids !== undefined || !this.#settings.knowsTraceParent) return several ?? noContext;
    const text = onlyValue(headers, "traceparent");
    const parent = text === undefined ? undefined : parseTraceParent(text);
    if (parent === undefined) return several ?? noContext;
    const { traceId, spanId, isSampled } = parent;
    return { ids: { traceId, spanId, parentSpanId: undefined }, decision: isSampled ? "sampled" : "not_sampled" };
  }

  inject(span: ActiveSpan, headers: HeaderMap, spanId: string): void {
    const { traceId, isSampled } = span;
    const parentSpanId = spanId === span.spanId ? span.parentSpanId : span.spanId;
    // Whoever began with one header reads that one alone.
    if (headers.has("b3")) headers.set("b3", b3Text(traceId, spanId, isSampled, parentSpanId || undefined));
    else {
      headers.set("x-b3-traceid", traceId);
      headers.set("x-b3-spanid", spanId);
      if (parentSpanId !== "") headers.set("x-b3-parentspanid", parentSpanId);
      else headers.remove("x-b3-parentspanid");
      headers.set("x-b3-sampled", isSampled ? "1" : "0");
    }
    if (!this.#settings.knowsTraceParent) return;
    headers.set("traceparent", traceParentText(traceId.padStart(32, "0"), spanId, isSampled));
  }

  nameOf({ authority }: RequestHead): string {
    return authority;
  }

  begin({ traceId }: ActiveSpan, head: SpanHead): void {
    const isShared = head.kind === "server" && head.isOfRequest && this.#settings.sharesSpans;
    const startUs = Math.round(head.startMs * 1000);
    const durationUs = Math.max(1, Math.round(head.endMs * 1000) - startUs);
    this.#format.begin({ ...head, traceId, isShared, startUs, durationUs });
  }

  tag(key: string, value: string): void {
    this.#format.tag(key, value);
  }

  typedTag(key: string, value: bigint | number | boolean): void {
    this.#format.tag(key, String(value));
  }

  event(timeMs: number, name: string, attributes: readonly (readonly [string, string])[]): void {
    const words = [name, ...attributes.map(([key, value]) => `${key}=${value}`)].join(" ");
    this.#format.annotation(Math.round(timeMs * 1000), words);
  }

  end(): void {
    this.#exporter.add(this.#format.end());
  }
}
