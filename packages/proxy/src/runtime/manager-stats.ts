// How many clusters and listeners there are, and how often they come, change and go, under Envoy's names
// (`cluster_manager.cluster_added`, `listener_manager.total_listeners_active`).
import type { MetricRegistry } from "@tulle/telemetry";
import { eachOf } from "../stats/stat-description.ts";

const clusterCounters = { added: "cluster_added", modified: "cluster_modified", removed: "cluster_removed" };
const clusterGauges = { active: "active_clusters", warming: "warming_clusters" };

const listenerCounters = {
  /** When they are accepted, before they are warm. */
  added: "listener_added",
  modified: "listener_modified",
  removed: "listener_removed",
  /** At the end of the process. */
  stopped: "listener_stopped",
  created: "listener_create_success",
  failed: "listener_create_failure",
  /** The sockets stay, the filter chains are others. */
  updatedInPlace: "listener_in_place_updated",
};
const listenerGauges = {
  active: "total_listeners_active",
  warming: "total_listeners_warming",
  draining: "total_listeners_draining",
  drainingChains: "total_filter_chains_draining",
  workersStarted: "workers_started",
};

const described = (root: string, stat: string) => ({ name: `envoy_${root}_${stat}`, statName: `${root}.${stat}` });

export type ClusterManagerStats = ReturnType<typeof makeClusterManagerStats>;
export type ListenerManagerStats = ReturnType<typeof makeListenerManagerStats>;

export function makeClusterManagerStats(metrics: MetricRegistry) {
  const root = "cluster_manager";
  return {
    ...eachOf(clusterCounters, (stat) => metrics.counter(described(root, stat))),
    ...eachOf(clusterGauges, (stat) => metrics.gauge(described(root, stat))),
  };
}

export function makeListenerManagerStats(metrics: MetricRegistry) {
  const root = "listener_manager";
  return {
    ...eachOf(listenerCounters, (stat) => metrics.counter(described(root, stat))),
    ...eachOf(listenerGauges, (stat) => metrics.gauge(described(root, stat))),
  };
}

/** A version was accepted. `isKnown`: one of that name serves, or warms. */
export function countAccepted({ added, modified }: Pick<ClusterManagerStats, "added" | "modified">, isKnown: boolean) {
  (isKnown ? modified : added).increment();
}
