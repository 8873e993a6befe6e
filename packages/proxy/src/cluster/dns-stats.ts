// What clusters of the types STRICT_DNS and LOGICAL_DNS count of their look-ups, under Envoy's names.
import type { MetricRegistry } from "@tulle/telemetry";
import { type Counters, counterGroup } from "../stats/stat-description.ts";
import { clusterScope } from "./cluster-stats.ts";

const counters = {
  attempts: "update_attempt",
  successes: "update_success",
  failures: "update_failure",
  /** An answer that changed nothing. */
  unchanged: "update_no_rebuild",
} as const;

export type DnsStats = Counters<typeof counters>;

export function makeDnsStats(metrics: MetricRegistry, observabilityName: string): DnsStats {
  return counterGroup(metrics, clusterScope(observabilityName), counters);
}
