// What the process tells of itself under Envoy's names.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricRegistry } from "@tulle/telemetry";
import { keepServerStats } from "./server-stats.ts";

test("server.* is there from the start", () => {
  const metrics = new MetricRegistry();
  const startedAtMs = Date.now() - 90_000;
  const progress = { startedAtMs, initializedAtMs: startedAtMs + 250, phase: "LIVE" };
  keepServerStats(metrics, progress, { tlsContexts: () => [], connectionCount: () => 3 }).take();
  const values = Object.fromEntries(
    [...metrics.allSeries()].map(({ statName, metric }) => [statName, "value" in metric ? metric.value : undefined]),
  );
  const { "server.uptime": uptime, "server.live": live, "server.concurrency": concurrency } = values;
  assert.deepEqual([uptime, live, concurrency], [90, 1, 1]);
  assert.equal(values["server.state"], 0);
  assert.equal(values["server.total_connections"], 3);
  const times = [...metrics.allSeries()].find(({ statName }) => statName === "server.initialization_time_ms")!.metric;
  assert.deepEqual("sum" in times && [times.count, times.sum], [1, 250]);
  for (const name of ["memory_allocated", "memory_heap_size", "memory_physical_size"]) {
    assert.ok(Number(values[`server.${name}`]) > 1_000_000, name);
  }
});
