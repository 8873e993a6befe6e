// Zipkin's spans as protobuf (HTTP_PROTO): a ListOfSpans of zipkin.proto3.
import { ProtobufWriter } from "@tulle/telemetry";
import { spanText } from "./span-text.ts";
import { lastMarks, type ZipkinFormat, type ZipkinSpan } from "./zipkin-format.ts";

/** Of ListOfSpans. */
const spansField = 1;
/** Of Span. */
const fields = {
  traceId: 1,
  parentId: 2,
  id: 3,
  kind: 4,
  name: 5,
  timestamp: 6,
  duration: 7,
  localEndpoint: 8,
  annotations: 10,
  tags: 11,
  shared: 13,
} as const;
const kinds = { client: 1, server: 2 } as const;

export class ZipkinProtobuf implements ZipkinFormat {
  readonly contentType = "application/x-protobuf";
  readonly #serviceName: string;
  readonly #writer = new ProtobufWriter();
  #start = 0;
  #endUs = 0;
  #mark = "";

  constructor(serviceName: string) {
    this.#serviceName = serviceName;
  }

  begin({ traceId, spanId, parentSpanId, name, kind, isShared, startUs, durationUs }: ZipkinSpan): void {
    const writer = this.#writer;
    writer.clear();
    this.#start = writer.begin(spansField);
    this.#endUs = startUs + durationUs;
    this.#mark = lastMarks[kind];
    writer.hex(fields.traceId, traceId);
    if (parentSpanId !== "") writer.hex(fields.parentId, parentSpanId);
    writer.hex(fields.id, spanId);
    writer.uint(fields.kind, kinds[kind]);
    writer.text(fields.name, spanText(name));
    writer.fixed64(fields.timestamp, startUs);
    writer.uint(fields.duration, durationUs);
    const endpoint = writer.begin(fields.localEndpoint);
    writer.text(1, this.#serviceName);
    writer.end(endpoint);
    if (isShared) writer.bool(fields.shared, true);
  }

  tag(key: string, value: string): void {
    const writer = this.#writer;
    const start = writer.begin(fields.tags);
    writer.text(1, key);
    writer.text(2, spanText(value));
    writer.end(start);
  }

  annotation(timeUs: number, value: string): void {
    const writer = this.#writer;
    const start = writer.begin(fields.annotations);
    writer.fixed64(1, timeUs);
    writer.text(2, spanText(value));
    writer.end(start);
  }

  end(): Uint8Array {
    this.annotation(this.#endUs, this.#mark);
    this.#writer.end(this.#start);
    return this.#writer.written;
  }

  envelope(items: Buffer): Buffer {
    return Buffer.from(items);
  }
}
