// Envoy's statistics of the process itself (`server.*`), taken anew before statistics are flushed.
import { getFips } from "node:crypto";
import { getHeapStatistics } from "node:v8";
import type { Gauge, MetricRegistry } from "@tulle/telemetry";
import type { CommonTlsContext } from "../tls/common-tls-context.ts";
import { eachOf } from "./stat-description.ts";

const names = {
  uptime: "uptime",
  live: "live",
  state: "state",
  fipsMode: "compilation_settings.fips_mode",
  concurrency: "concurrency",
  allocatedBytes: "memory_allocated",
  heapBytes: "memory_heap_size",
  physicalBytes: "memory_physical_size",
  certificateDays: "days_until_first_cert_expiring",
  connections: "total_connections",
};

/** ServerInfo.State of Envoy's admin interface. */
const states: Readonly<Record<string, number>> = { LIVE: 0, DRAINING: 1, PRE_INITIALIZING: 2, INITIALIZING: 3 };

export interface ServerProgress {
  readonly startedAtMs: number;
  /** Undefined = the start is not over. */
  readonly initializedAtMs: number | undefined;
  /** `LIVE` once everything of the start is there. */
  readonly phase: string;
}

export interface ServerStats {
  /** Takes them anew. */
  take(): void;
}

/** What there is of each now. */
export interface ServerParts {
  readonly tlsContexts: () => readonly Pick<CommonTlsContext, "namedCertificates">[];
  /** Of clients, at all listeners. */
  readonly connectionCount: () => number;
}

export function keepServerStats(metrics: MetricRegistry, progress: ServerProgress, parts: ServerParts): ServerStats {
  const gauges = eachOf(names, (stat): Gauge =>
    metrics.gauge({ name: `envoy_server_${stat.replaceAll(".", "_")}`, statName: `server.${stat}` }),
  );
  const initializationTimeMs = metrics.histogram({
    name: "envoy_server_initialization_time_ms",
    statName: "server.initialization_time_ms",
  });
  let hasToldStart = false;
  gauges.concurrency.set(1);
  gauges.fipsMode.set(getFips());
  const take = (): void => {
    const heap = getHeapStatistics();
    gauges.uptime.set(Math.floor((Date.now() - progress.startedAtMs) / 1000));
    gauges.state.set(states[progress.phase] ?? states["INITIALIZING"]!);
    gauges.live.set(progress.phase === "LIVE" ? 1 : 0);
    // What is outside of V8's heap, buffers above all, is allocated, too.
    gauges.allocatedBytes.set(heap.used_heap_size + heap.external_memory);
    gauges.heapBytes.set(heap.total_heap_size + heap.external_memory);
    gauges.physicalBytes.set(process.memoryUsage.rss());
    gauges.certificateDays.set(daysUntilFirstExpiry(parts.tlsContexts()));
    gauges.connections.set(parts.connectionCount());
    if (hasToldStart || progress.initializedAtMs === undefined) return;
    hasToldStart = true;
    initializationTimeMs.record(progress.initializedAtMs - progress.startedAtMs);
  };
  take();
  return { take };
}

/** Envoy's number where there is no certificate. */
const noExpiryDays = 2 ** 32 - 1;
const dayMs = 86_400_000;

/** 0 once one has expired. */
function daysUntilFirstExpiry(contexts: readonly Pick<CommonTlsContext, "namedCertificates">[]): number {
  const nowMs = Date.now();
  let days = noExpiryDays;
  for (const context of contexts) {
    for (const { certificate } of context.namedCertificates())
      days = Math.min(days, Math.floor((certificate.validToDate.getTime() - nowMs) / dayMs));
  }
  return Math.max(0, days);
}
