// The span of one request while it lives. Every traced connection manager makes one a request, sampled or not: whoever
// comes after has to be told which trace it belongs to. One shape, so that nothing on the way looks twice.

import type { HeaderMap } from "../http/header-map.ts";

/** Why a request is traced (Envoy: `Tracing::Reason`). */
export type TraceReason = "not_traceable" | "sampling" | "service_forced" | "client_forced";

export interface SpanEvent {
  readonly timeMs: number;
  readonly name: string;
  readonly attributes: readonly (readonly [key: string, value: string])[];
}

export type SpanKind = "server" | "client";

/** What a span is beside its tags. Times are milliseconds since 1970, with fractions. */
export interface SpanHead {
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: SpanKind;
  /** Of a request, and not of one of its tries. */
  readonly isOfRequest: boolean;
  readonly startMs: number;
  readonly endMs: number;
}

/** Takes tags of the span that has been begun. Texts are as the wire has them: a character a byte. */
export interface TagSink {
  tag(key: string, value: string): void;
  /** A number or a truth value where the format has such. */
  typedTag(key: string, value: bigint | number | boolean): void;
}

/** Spans in one of the formats of tracing: how the next one is told, and how a span is written. */
export interface SpanWriter extends TagSink {
  /** Tells the next one; `spanId` is the request's own or that of a try, whose parent is the request's then. */
  inject(span: ActiveSpan, headers: HeaderMap, spanId: string): void;
  begin(span: ActiveSpan, head: SpanHead): void;
  event(timeMs: number, name: string, attributes: readonly (readonly [key: string, value: string])[]): void;
  /** The span is whole and goes to the collector. `grpcStatus` undefined: it was no call of gRPC, or had no status. */
  end(status: number, grpcStatus: number | undefined): void;
}

export class ActiveSpan {
  /** Thirty-two hexadecimal digits; of Zipkin sixteen, too. */
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: the trace begins here. */
  readonly parentSpanId: string;
  readonly isSampled: boolean;
  /** To be passed on as `tracestate`. */
  readonly traceState: string | undefined;

  /** Who began it, for spans of calls that are made for the request. */
  tracer: SpanWriter | undefined = undefined;
  /** In place of the name that the tracer would give it. */
  operation: string | undefined = undefined;
  /** For the response's `x-envoy-decorator-operation`. */
  decoration: string | undefined = undefined;
  events: SpanEvent[] | undefined = undefined;
  /** Of the try under way, where each has a span of its own; empty: there is none. */
  trySpanId = "";
  tryStartMs = 0;
  tryCount = 0;

  constructor(
    traceId: string,
    spanId: string,
    parentSpanId: string,
    isSampled: boolean,
    traceState: string | undefined,
  ) {
    this.traceId = traceId;
    this.spanId = spanId;
    this.parentSpanId = parentSpanId;
    this.isSampled = isSampled;
    this.traceState = traceState;
  }
}
