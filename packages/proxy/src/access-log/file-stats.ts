// What becomes of lines on their way to files, under Envoy's names (`filesystem.*`), of all files together.
import type { MetricRegistry } from "@tulle/telemetry";
import { type Counters, eachOf, type Gauges } from "../stats/stat-description.ts";

const counters = {
  /** Lines that were taken. */
  buffered: "write_buffered",
  /** Buffers that were written whole, that were not, and those whose time had come before they were full. */
  completed: "write_completed",
  failed: "write_failed",
  flushedByTimer: "flushed_by_timer",
  /** A path could not be opened anew. */
  reopenFailed: "reopen_failed",
} as const;
/** Bytes that wait, those that are being written among them. */
const gauges = { waitingBytes: "write_total_buffered" } as const;

export type FileStats = Counters<typeof counters> & Gauges<typeof gauges>;

export function makeFileStats(metrics: MetricRegistry): FileStats {
  const described = (stat: string) => ({ name: `envoy_filesystem_${stat}`, statName: `filesystem.${stat}` });
  return {
    ...eachOf(counters, (stat) => metrics.counter(described(stat))),
    ...eachOf(gauges, (stat) => metrics.gauge(described(stat))),
  };
}
