// A format of tracing: how a request's context is read, and what spans are called (Envoy: `Tracing::Driver`).
import type { RequestHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { ActiveSpan, SpanKind, SpanWriter } from "./active-span.ts";

export interface Tracer extends SpanWriter {
  start(request: RequestHead, kind: SpanKind, isTraced: boolean, info: StreamInfo): ActiveSpan;
  /** The name of a span that nothing names. */
  nameOf(request: RequestHead, isEgress: boolean): string;
}
