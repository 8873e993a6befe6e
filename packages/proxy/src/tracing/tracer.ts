// What spans are in one of the formats of tracing: how a request's context is read and passed on, and how a span is
// written (Envoy: `Tracing::Driver`).
import type { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { ActiveSpan } from "./active-span.ts";

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

export interface Tracer extends TagSink {
  start(request: RequestHead, kind: SpanKind, isTraced: boolean, info: StreamInfo): ActiveSpan;
  /** Tells the next one; `spanId` is the request's own or that of a try, whose parent is the request's then. */
  inject(span: ActiveSpan, headers: HeaderMap, spanId: string): void;
  /** The name of a span that nothing names. */
  nameOf(request: RequestHead, isEgress: boolean): string;
  begin(span: ActiveSpan, head: SpanHead): void;
  event(timeMs: number, name: string, attributes: readonly (readonly [key: string, value: string])[]): void;
  /** The span is whole and goes to the collector. `grpcStatus` undefined: it was no call of gRPC, or had no status. */
  end(status: number, grpcStatus: number | undefined): void;
}
