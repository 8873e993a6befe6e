// A log record of OpenTelemetry (opentelemetry-proto, logs/v1) as an item of a request: what stands in ScopeLogs.
import { itemField } from "./otlp-message.ts";
import type { ProtobufWriter } from "./protobuf-writer.ts";

/** An AnyValue, as far as access logs have them: text, a list, or a map in its order. */
export type OtlpValue = string | readonly OtlpValue[] | { readonly keyValues: OtlpEntries };
export type OtlpEntries = readonly (readonly [key: string, value: OtlpValue])[];

export interface OtlpLogRecord {
  readonly timeMs: number;
  readonly body: OtlpValue | undefined;
  readonly attributes: OtlpEntries;
  /** Hexadecimal; undefined without a trace. */
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
}

export function writeLogRecord(writer: ProtobufWriter, record: OtlpLogRecord): void {
  const start = writer.begin(itemField);
  writer.timeMs(1, record.timeMs);
  if (record.body !== undefined) writeValue(writer, 5, record.body);
  writeEntries(writer, 6, record.attributes);
  if (record.traceId !== undefined) writer.hex(9, record.traceId);
  if (record.spanId !== undefined) writer.hex(10, record.spanId);
  writer.end(start);
}

/** KeyValues. */
function writeEntries(writer: ProtobufWriter, field: number, entries: OtlpEntries): void {
  for (const [key, value] of entries) {
    const start = writer.begin(field);
    writer.text(1, key);
    writeValue(writer, 2, value);
    writer.end(start);
  }
}

function writeValue(writer: ProtobufWriter, field: number, value: OtlpValue): void {
  const start = writer.begin(field);
  if (typeof value === "string") writer.text(1, value);
  else {
    // ArrayValue and KeyValueList have their elements in field 1.
    const inner = writer.begin("keyValues" in value ? 6 : 5);
    if ("keyValues" in value) writeEntries(writer, 1, value.keyValues);
    else for (const element of value) writeValue(writer, 1, element);
    writer.end(inner);
  }
  writer.end(start);
}
