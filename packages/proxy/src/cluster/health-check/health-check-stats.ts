// `cluster.<name>.health_check.…` by Envoy's names.
import type { MetricRegistry } from "@tulle/telemetry";
import { type Counters, counterGroup, type Gauges, gaugeGroup } from "../../stats/stat-description.ts";
import { clusterScope } from "../cluster-stats.ts";

const counters = {
  attempt: "health_check.attempt",
  success: "health_check.success",
  failure: "health_check.failure",
  passiveFailure: "health_check.passive_failure",
  networkFailure: "health_check.network_failure",
  /** Not of Envoy. */
  answerTooLong: "health_check.answer_too_long",
  verifyCluster: "health_check.verify_cluster",
} as const;

const gauges = { healthy: "health_check.healthy", degraded: "health_check.degraded" } as const;

export type HealthCheckStats = Counters<typeof counters> & Gauges<typeof gauges>;

export function makeHealthCheckStats(metrics: MetricRegistry, clusterName: string): HealthCheckStats {
  const scope = clusterScope(clusterName);
  return { ...counterGroup(metrics, scope, counters), ...gaugeGroup(metrics, scope, gauges) };
}
