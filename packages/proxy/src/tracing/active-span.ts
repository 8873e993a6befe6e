// The span of one request while it lives. Every traced connection manager makes one a request, sampled or not: whoever
// comes after has to be told which trace it belongs to. One shape, so that nothing on the way looks twice.

/** Why a request is traced (Envoy: `Tracing::Reason`). */
export type TraceReason = "not_traceable" | "sampling" | "service_forced" | "client_forced";

export interface SpanEvent {
  readonly timeMs: number;
  readonly name: string;
  readonly attributes: readonly (readonly [key: string, value: string])[];
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
