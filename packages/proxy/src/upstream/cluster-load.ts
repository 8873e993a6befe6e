// What is under way to a cluster now, which its circuit breakers hold against their limits. Statistics report the same
// numbers, but under a name that several clusters may share (`alt_stat_name`), and nobody's limit is another's affair.
import type { Gauge } from "@tulle/telemetry";
import type { ClusterStats } from "../cluster/cluster-stats.ts";

export class ClusterLoad {
  requests = 0;
  pendingRequests = 0;
  retries = 0;
  connections = 0;
}

/** A cluster, as far as it is counted here. */
export interface LoadedCluster {
  readonly load: ClusterLoad;
  readonly circuitBreakers: {
    readonly maxConnections: number;
    readonly maxPendingRequests: number;
    readonly maxRequests: number;
    readonly maxRetries: number;
    readonly retryBudget: unknown;
  };
  readonly stats: {
    readonly upstreamRequestsActive: Gauge;
    readonly upstreamRequestsPendingActive: Gauge;
    readonly upstreamRetriesActive: Gauge;
    readonly upstreamConnectionsActive: Gauge;
    readonly requestsOpen: Gauge;
    readonly pendingRequestsOpen: Gauge;
    readonly retriesOpen: Gauge;
    readonly connectionsOpen: Gauge;
  };
}

export function countRequest({ load, stats, circuitBreakers }: LoadedCluster, change: 1 | -1): void {
  load.requests += change;
  stats.upstreamRequestsActive.add(change);
  stats.requestsOpen.value = load.requests >= circuitBreakers.maxRequests ? 1 : 0;
}

export function countPendingRequest({ load, stats, circuitBreakers }: LoadedCluster, change: 1 | -1): void {
  load.pendingRequests += change;
  stats.upstreamRequestsPendingActive.add(change);
  stats.pendingRequestsOpen.value = load.pendingRequests >= circuitBreakers.maxPendingRequests ? 1 : 0;
}

/** A budget of retries is a share of what is under way then, and not held against `maxRetries`. */
export function countRetry({ load, stats, circuitBreakers }: LoadedCluster, change: 1 | -1): void {
  load.retries += change;
  stats.upstreamRetriesActive.add(change);
  if (circuitBreakers.retryBudget !== undefined) return;
  stats.retriesOpen.value = load.retries >= circuitBreakers.maxRetries ? 1 : 0;
}

export function countConnection({ load, stats, circuitBreakers }: LoadedCluster, change: 1 | -1): void {
  load.connections += change;
  stats.upstreamConnectionsActive.add(change);
  stats.connectionsOpen.value = load.connections >= circuitBreakers.maxConnections ? 1 : 0;
}

/** `byHost`: not by us; one that never came up is ended by its host, but for a time-out. `isActive`: in use then. */
export function countEnd(stats: ClusterStats, byHost: boolean, isActive: boolean): void {
  stats.upstreamConnectionsDestroyed.increment();
  (byHost ? stats.upstreamConnectionsDestroyedRemote : stats.upstreamConnectionsDestroyedLocal).increment();
  if (!isActive) return;
  stats.upstreamConnectionsDestroyedActive.increment();
  (byHost ? stats.upstreamConnectionsDestroyedRemoteActive : stats.upstreamConnectionsDestroyedLocalActive).increment();
}
