// Dynamic metadata of a stream as a message (core.v3.Metadata, of google.protobuf.Struct).
import type { ProtobufWriter } from "@tulle/telemetry";

type Values = Readonly<Record<string, unknown>>;

/** Deeper values are left out: metadata comes from tokens and answers of others. */
const maxDepth = 32;

export function writeFilterMetadata(writer: ProtobufWriter, field: number, metadata: Readonly<Record<string, Values>>) {
  const names = Object.keys(metadata);
  if (names.length === 0) return;
  const start = writer.begin(field);
  for (const name of names) {
    const entry = writer.begin(1);
    writer.text(1, name);
    const value = writer.begin(2);
    writeFields(writer, metadata[name]!, 0);
    writer.end(value);
    writer.end(entry);
  }
  writer.end(start);
}

/** Of a Struct. */
function writeFields(writer: ProtobufWriter, values: Values, depth: number): void {
  for (const name of Object.keys(values)) {
    const entry = writer.begin(1);
    writer.text(1, name);
    writeValue(writer, 2, values[name], depth);
    writer.end(entry);
  }
}

function writeValue(writer: ProtobufWriter, field: number, value: unknown, depth: number): void {
  const start = writer.begin(field);
  if (typeof value === "number") writer.double(2, value);
  else if (typeof value === "string") writer.text(3, value);
  else if (typeof value === "boolean") writer.bool(4, value);
  else if (typeof value !== "object" || value === null || depth === maxDepth) writer.uint(1, 0);
  else if (Array.isArray(value)) {
    const list = writer.begin(6);
    for (const element of value as readonly unknown[]) writeValue(writer, 1, element, depth + 1);
    writer.end(list);
  } else {
    const struct = writer.begin(5);
    writeFields(writer, value as Values, depth + 1);
    writer.end(struct);
  }
  writer.end(start);
}
