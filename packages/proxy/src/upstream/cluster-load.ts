// What is under way to a cluster now, which its circuit breakers hold against their limits. Statistics report the same numbers, but under a
// name that several clusters may share (`alt_stat_name`), and nobody's limit is another's affair.
import type { Cluster } from "../cluster/cluster.ts";

export class ClusterLoad {
  requests = 0;
  pendingRequests = 0;
  retries = 0;
  connections = 0;
}

export function countRequest({ load, stats }: Cluster, change: 1 | -1): void {
  load.requests += change;
  stats.upstreamRequestsActive.add(change);
}

export function countPendingRequest({ load, stats }: Cluster, change: 1 | -1): void {
  load.pendingRequests += change;
  stats.upstreamRequestsPendingActive.add(change);
}

export function countRetry({ load, stats }: Cluster, change: 1 | -1): void {
  load.retries += change;
  stats.upstreamRetriesActive.add(change);
}

export function countConnection({ load, stats }: Cluster, change: 1 | -1): void {
  load.connections += change;
  stats.upstreamConnectionsActive.add(change);
}
