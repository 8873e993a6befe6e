// A metric of OpenTelemetry with one data point (opentelemetry-proto, metrics/v1) as an item of a request: what stands
// in ScopeMetrics.
import type { Exemplar } from "../metric.ts";
import { itemField, writeAttribute } from "./otlp-message.ts";
import type { ProtobufWriter } from "./protobuf-writer.ts";

/** AggregationTemporality */
export const temporalities = { delta: 1, cumulative: 2 } as const;
export type Temporality = keyof typeof temporalities;

export interface OtlpGauge {
  readonly name: string;
  readonly attributes: readonly (readonly [key: string, value: string])[];
  /** Wall clock. */
  readonly atMs: number;
  /** Whole numbers are sent as integers. */
  readonly value: number;
}

export interface OtlpSum extends OtlpGauge {
  /** Since when the value was added up. */
  readonly startMs: number;
  readonly exemplars: readonly Exemplar[];
}

export interface OtlpHistogram extends Omit<OtlpSum, "value"> {
  readonly bounds: readonly number[];
  /** Of each bucket alone; one more than there are bounds. */
  readonly bucketCounts: Float64Array;
  readonly count: number;
  readonly sum: number;
}

export function writeGauge(writer: ProtobufWriter, gauge: OtlpGauge): void {
  const start = writer.begin(itemField);
  writer.text(1, gauge.name);
  const dataStart = writer.begin(5);
  writeNumberPoint(writer, gauge, undefined, []);
  writer.end(dataStart);
  writer.end(start);
}

/** A counter. */
export function writeSum(writer: ProtobufWriter, sum: OtlpSum, temporality: Temporality): void {
  const start = writer.begin(itemField);
  writer.text(1, sum.name);
  const dataStart = writer.begin(7);
  writeNumberPoint(writer, sum, sum.startMs, sum.exemplars);
  writer.uint(2, temporalities[temporality]);
  writer.bool(3, true);
  writer.end(dataStart);
  writer.end(start);
}

export function writeHistogram(writer: ProtobufWriter, histogram: OtlpHistogram, temporality: Temporality): void {
  const start = writer.begin(itemField);
  writer.text(1, histogram.name);
  const dataStart = writer.begin(9);
  const pointStart = writer.begin(1);
  writer.timeMs(2, histogram.startMs);
  writer.timeMs(3, histogram.atMs);
  writer.fixed64(4, histogram.count);
  writer.double(5, histogram.sum);
  writer.packedFixed64(6, histogram.bucketCounts);
  writer.packedDoubles(7, histogram.bounds);
  writeExemplars(writer, 8, histogram.exemplars);
  for (const [key, value] of histogram.attributes) writeAttribute(writer, 9, key, value);
  writer.end(pointStart);
  writer.uint(2, temporalities[temporality]);
  writer.end(dataStart);
  writer.end(start);
}

function writeNumberPoint(
  writer: ProtobufWriter,
  point: OtlpGauge,
  startMs: number | undefined,
  exemplars: readonly Exemplar[],
): void {
  const start = writer.begin(1);
  if (startMs !== undefined) writer.timeMs(2, startMs);
  writer.timeMs(3, point.atMs);
  if (Number.isSafeInteger(point.value)) writer.fixed64(6, point.value);
  else writer.double(4, point.value);
  writeExemplars(writer, 5, exemplars);
  for (const [key, value] of point.attributes) writeAttribute(writer, 7, key, value);
  writer.end(start);
}

function writeExemplars(writer: ProtobufWriter, field: number, exemplars: readonly Exemplar[]): void {
  for (const { traceId, value, atMs } of exemplars) {
    const start = writer.begin(field);
    writer.timeMs(2, atMs);
    writer.double(3, value);
    writer.hex(5, traceId);
    writer.end(start);
  }
}
