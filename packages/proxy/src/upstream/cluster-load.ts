// What is under way to a cluster now, which its circuit breakers hold against their limits. Statistics report the same
// numbers, but under a name that several clusters may share (`alt_stat_name`), and nobody's limit is another's affair.
import type { Gauge } from "@tulle/telemetry";

export class ClusterLoad {
  requests = 0;
  pendingRequests = 0;
  retries = 0;
  connections = 0;
}

/** A cluster, as far as it is counted here. */
export interface LoadedCluster {
  readonly load: ClusterLoad;
  readonly stats: {
    readonly upstreamRequestsActive: Gauge;
    readonly upstreamRequestsPendingActive: Gauge;
    readonly upstreamRetriesActive: Gauge;
    readonly upstreamConnectionsActive: Gauge;
  };
}

export function countRequest({ load, stats }: LoadedCluster, change: 1 | -1): void {
  load.requests += change;
  stats.upstreamRequestsActive.add(change);
}

export function countPendingRequest({ load, stats }: LoadedCluster, change: 1 | -1): void {
  load.pendingRequests += change;
  stats.upstreamRequestsPendingActive.add(change);
}

export function countRetry({ load, stats }: LoadedCluster, change: 1 | -1): void {
  load.retries += change;
  stats.upstreamRetriesActive.add(change);
}

export function countConnection({ load, stats }: LoadedCluster, change: 1 | -1): void {
  load.connections += change;
  stats.upstreamConnectionsActive.add(change);
}
