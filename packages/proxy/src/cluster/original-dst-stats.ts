// What only clusters of type ORIGINAL_DST count; the names are not Envoy's, which has no such limits.
import type { MetricRegistry } from "@tulle/telemetry";
import { type Counters, counterGroup } from "../stats/stat-description.ts";
import { clusterScope } from "./cluster-stats.ts";

const counters = {
  /** The destination was a listener of this proxy. */
  loop: "original_dst_loop",
  /** There were too many hosts, all of them in use. */
  hostOverflow: "original_dst_host_overflow",
} as const;

export type OriginalDstStats = Counters<typeof counters>;

export function makeOriginalDstStats(metrics: MetricRegistry, observabilityName: string): OriginalDstStats {
  return counterGroup(metrics, clusterScope(observabilityName), counters);
}
