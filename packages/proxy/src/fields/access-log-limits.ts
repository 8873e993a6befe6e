// What an access log that leaves in batches may keep, and its series, over OpenTelemetry's protocol and Envoy's own.
import type { Duration } from "@bufbuild/protobuf/wkt";
import type { MetricRegistry } from "@tulle/telemetry";
import type { ExportLimits, ExportStats } from "../upstream/batch-exporter.ts";
import { durationMs } from "./duration.ts";

/** Envoy's: `buffer_flush_interval`, `buffer_size_bytes`. */
const defaultFlushIntervalMs = 1000;
const defaultBatchBytes = 16 * 1024;
/** What a collector that is slow or down may cost (Envoy keeps up to a MiB of one, too). */
const maxBufferedBytes = 1 << 20;
const maxBufferedRecords = 8192;

interface BufferFields {
  readonly bufferFlushInterval?: Duration | undefined;
  readonly bufferSizeBytes?: number | undefined;
}

/** The first message that says something counts. */
export function accessLogLimits(...messages: readonly (BufferFields | undefined)[]): ExportLimits {
  const bytes = messages.find((message) => message?.bufferSizeBytes !== undefined)?.bufferSizeBytes;
  const interval = messages.find((message) => message?.bufferFlushInterval !== undefined)?.bufferFlushInterval;
  return {
    batchItems: maxBufferedRecords / 2,
    batchBytes: Math.min(bytes ?? defaultBatchBytes, maxBufferedBytes / 2),
    flushIntervalMs: durationMs(interval, defaultFlushIntervalMs),
    maxItems: maxBufferedRecords,
    maxBytes: maxBufferedBytes,
  };
}

/** `prefix` stands behind `access_logs.` in Envoy's names. */
export function accessLogStats(prefix: string, metrics: MetricRegistry): ExportStats {
  const statPrefix = `access_logs.${prefix}`;
  const counter = (name: string, help: string) =>
    metrics.counter({
      name: `envoy_${`${statPrefix}${name}`.replace(/[^A-Za-z0-9_]/g, "_")}`,
      help,
      statName: `${statPrefix}${name}`,
    });
  return {
    sent: counter("logs_written", "Log records that the collector took."),
    dropped: counter("logs_dropped", "Log records that it did not take, or that came while the buffer was full."),
  };
}
