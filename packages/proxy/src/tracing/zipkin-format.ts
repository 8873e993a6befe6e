// How Zipkin's spans are written, JSON or protobuf (zipkin-api: zipkin2-api.yaml, zipkin.proto): one span at a time.
import type { SpanHead } from "./active-span.ts";

export interface ZipkinSpan extends SpanHead {
  /** Sixteen or thirty-two hexadecimal digits. */
  readonly traceId: string;
  /** The client's span has the same id. */
  readonly isShared: boolean;
  /** Microseconds since 1970. */
  readonly startUs: number;
  readonly durationUs: number;
}

/** Texts are as the wire has them: a character a byte. */
export interface ZipkinFormat {
  readonly contentType: string;
  begin(span: ZipkinSpan): void;
  tag(key: string, value: string): void;
  annotation(timeUs: number, value: string): void;
  /** An item of `envelope`; good until the next `begin`. */
  end(): Uint8Array;
  /** Spans, one behind the other, to the whole request. */
  envelope(items: Buffer): Buffer;
}

/** When the other side had, or sent, the last of it: what Zipkin's first version called it. */
export const lastMarks = { server: "ss", client: "cr" } as const;
