// The gauges of circuit breakers: 1 while as many are under way as a limit allows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricRegistry } from "@tulle/telemetry";
import { makeClusterStats } from "../cluster/cluster-stats.ts";
import { ClusterLoad, countConnection, countPendingRequest, countRequest, countRetry } from "./cluster-load.ts";

const limits = { maxConnections: 2, maxPendingRequests: 2, maxRequests: 2, maxRetries: 2, retryBudget: undefined };
const loaded = (circuitBreakers: typeof limits | (Omit<typeof limits, "retryBudget"> & { retryBudget: object })) => ({
  load: new ClusterLoad(),
  circuitBreakers,
  stats: makeClusterStats(new MetricRegistry(), "c"),
});

for (const { name, count, gauge } of [
  { name: "connections", count: countConnection, gauge: "connectionsOpen" },
  { name: "requests", count: countRequest, gauge: "requestsOpen" },
  { name: "waiting requests", count: countPendingRequest, gauge: "pendingRequestsOpen" },
  { name: "retries", count: countRetry, gauge: "retriesOpen" },
] as const) {
  test(`${name}: open at the limit, closed below it`, () => {
    const cluster = loaded(limits);
    const seen = [1, 1, 1, -1, -1].map((change) => {
      count(cluster, change as 1 | -1);
      return cluster.stats[gauge].value;
    });
    assert.deepEqual(seen, [0, 1, 1, 1, 0]);
  });
}

test("a budget of retries has no limit that could be reached for good", () => {
  const cluster = loaded({ ...limits, retryBudget: {} });
  for (let index = 0; index < 5; index += 1) countRetry(cluster, 1);
  assert.equal(cluster.stats.retriesOpen.value, 0);
});
