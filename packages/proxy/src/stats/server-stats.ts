// Envoy's statistics of the process itself (`server.*`), taken anew as often as Envoy flushes its own.
import { getHeapStatistics } from "node:v8";
import type { Gauge, MetricRegistry } from "@tulle/telemetry";
import { eachOf } from "./stat-description.ts";

/** Envoy: stats_flush_interval. */
const intervalMs = 5_000;

const names = {
  uptime: "uptime",
  live: "live",
  concurrency: "concurrency",
  allocatedBytes: "memory_allocated",
  heapBytes: "memory_heap_size",
  physicalBytes: "memory_physical_size",
};

export interface ServerProgress {
  readonly startedAtMs: number;
  /** `LIVE` once everything of the start is there. */
  readonly phase: string;
}

/** Keeps them until it is disposed of. */
export function keepServerStats(metrics: MetricRegistry, progress: ServerProgress): Disposable {
  const gauges = eachOf(names, (stat): Gauge =>
    metrics.gauge({ name: `envoy_server_${stat}`, statName: `server.${stat}` }),
  );
  gauges.concurrency.set(1);
  const take = (): void => {
    const heap = getHeapStatistics();
    gauges.uptime.set(Math.floor((Date.now() - progress.startedAtMs) / 1000));
    gauges.live.set(progress.phase === "LIVE" ? 1 : 0);
    // What is outside of V8's heap, buffers above all, is allocated, too.
    gauges.allocatedBytes.set(heap.used_heap_size + heap.external_memory);
    gauges.heapBytes.set(heap.total_heap_size + heap.external_memory);
    gauges.physicalBytes.set(process.memoryUsage.rss());
  };
  take();
  const timer = setInterval(take, intervalMs);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
