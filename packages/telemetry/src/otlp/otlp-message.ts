// What the requests of OpenTelemetry have in common (opentelemetry-proto, common/v1 and collector/*/v1): attributes,
// and items of one resource and one scope in two messages around them. Spans, log records and metrics have the same
// numbers of fields there.
import { ProtobufWriter, varintBytes } from "./protobuf-writer.ts";

export const otlpMethods = {
  traces: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
  logs: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
  metrics: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
} as const;

/** A KeyValue with a text. */
export function writeAttribute(writer: ProtobufWriter, field: number, key: string, value: string): void {
  if (writer.asciiPair(field, key, value)) return;
  const start = writer.begin(field);
  writer.text(1, key);
  const valueStart = writer.begin(2);
  writer.text(1, value);
  writer.end(valueStart);
  writer.end(start);
}

export function writeIntAttribute(writer: ProtobufWriter, field: number, key: string, value: bigint): void {
  const start = writer.begin(field);
  writer.text(1, key);
  const valueStart = writer.begin(2);
  writer.int(3, value);
  writer.end(valueStart);
  writer.end(start);
}

export interface OtlpOrigin {
  readonly resource: readonly (readonly [key: string, value: string])[];
  readonly resourceSchemaUrl?: string;
  /** Undefined: the scope is left out. */
  readonly scope?: { readonly name: string; readonly version: string } | undefined;
}

/** The field in which ScopeSpans, ScopeLogs and ScopeMetrics hold their items. */
export const itemField = 2;

/** Around items that are encoded already, each with tag and length: the whole request. */
export function otlpEnvelope(origin: OtlpOrigin): (items: Buffer) => Buffer {
  const resource = new ProtobufWriter();
  const resourceStart = resource.begin(1);
  for (const [key, value] of origin.resource) writeAttribute(resource, 1, key, value);
  resource.end(resourceStart);
  const scope = new ProtobufWriter();
  if (origin.scope !== undefined) {
    const scopeStart = scope.begin(1);
    scope.text(1, origin.scope.name);
    scope.text(2, origin.scope.version);
    scope.end(scopeStart);
  }
  const schema = new ProtobufWriter();
  if (origin.resourceSchemaUrl !== undefined) schema.text(3, origin.resourceSchemaUrl);
  return (items) => {
    const scopeBytes = scope.length + items.length;
    const resourceBytes = resource.length + 1 + varintBytes(scopeBytes) + scopeBytes + schema.length;
    const head = new ProtobufWriter();
    tagged(head, 1, resourceBytes);
    head.raw(resource.written);
    tagged(head, 2, scopeBytes);
    head.raw(scope.written);
    return Buffer.concat([head.written, items, schema.written]);
  };
}

/** Tag and length of a message whose bytes follow; the field is below 16. */
function tagged(writer: ProtobufWriter, field: number, length: number): void {
  const bytes = [field * 8 + 2];
  let rest = length;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  writer.raw(Uint8Array.from([...bytes, rest]));
}
