// The counters of a cluster under Envoy's names: `cluster.<name>.upstream_rq_total` in the stats tree,
// `envoy_cluster_upstream_rq_total{envoy_cluster_name}` for Prometheus.
import type { MetricRegistry } from "@tulle/telemetry";
import { type Counters, counterGroup, type Gauges, gaugeGroup, type StatScope } from "../stats/stat-description.ts";
import { AnswerStats } from "./answer-stats.ts";
import { ConnectionLives } from "./connection-lives.ts";

/** Envoy's name without prefix, by our field; `rq_2xx` and its kin get the response class as a label. */
const counters = {
  upstreamRequestsTotal: "upstream_rq_total",
  upstreamRequests2xx: "upstream_rq_2xx",
  upstreamRequests3xx: "upstream_rq_3xx",
  upstreamRequests4xx: "upstream_rq_4xx",
  upstreamRequests5xx: "upstream_rq_5xx",
  upstreamRequestRetries: "upstream_rq_retry",
  upstreamRequestRetrySuccess: "upstream_rq_retry_success",
  upstreamRequestRetryLimitExceeded: "upstream_rq_retry_limit_exceeded",
  upstreamRequestRetryOverflow: "upstream_rq_retry_overflow",
  upstreamRequestRetryBackOffs: "upstream_rq_retry_backoff_exponential",
  /** Bodies that became too long to be kept for another try. */
  retriesAbandoned: "retry_or_shadow_abandoned",
  upstreamRequestTimeouts: "upstream_rq_timeout",
  upstreamRequestPerTryTimeouts: "upstream_rq_per_try_timeout",
  upstreamRequestPerTryIdleTimeouts: "upstream_rq_per_try_idle_timeout",
  upstreamRequestPendingOverflow: "upstream_rq_pending_overflow",
  upstreamRequestActiveOverflow: "upstream_rq_active_overflow",
  upstreamRequestsPendingTotal: "upstream_rq_pending_total",
  /** That waited for a connection: given up, and failed with it. */
  upstreamRequestsCancelled: "upstream_rq_cancelled",
  upstreamRequestsPendingFailed: "upstream_rq_pending_failure_eject",
  upstreamRequestRemoteResets: "upstream_rq_rx_reset",
  upstreamRequestLocalResets: "upstream_rq_tx_reset",
  upstreamRequestMaxDurationReached: "upstream_rq_max_duration_reached",
  upstreamConnectionsTotal: "upstream_cx_total",
  upstreamConnectionsHttp1: "upstream_cx_http1_total",
  upstreamConnectionsHttp2: "upstream_cx_http2_total",
  upstreamConnectionsDestroyed: "upstream_cx_destroy",
  /** By us, and by the host; and of both those that still carried a request. */
  upstreamConnectionsDestroyedLocal: "upstream_cx_destroy_local",
  upstreamConnectionsDestroyedRemote: "upstream_cx_destroy_remote",
  upstreamConnectionsDestroyedActive: "upstream_cx_destroy_with_active_rq",
  upstreamConnectionsDestroyedLocalActive: "upstream_cx_destroy_local_with_active_rq",
  upstreamConnectionsDestroyedRemoteActive: "upstream_cx_destroy_remote_with_active_rq",
  upstreamConnectFailures: "upstream_cx_connect_fail",
  upstreamConnectTimeouts: "upstream_cx_connect_timeout",
  /** Connections of a TCP proxy that were given up. */
  upstreamConnectAttemptsExceeded: "upstream_cx_connect_attempts_exceeded",
  upstreamConnectionOverflow: "upstream_cx_overflow",
  upstreamConnectionsMaxDuration: "upstream_cx_max_duration_reached",
  upstreamConnectionsMaxRequests: "upstream_cx_max_requests",
  upstreamConnectionsIdleTimeout: "upstream_cx_idle_timeout",
  /** By GOAWAY, or an answer that says so. */
  upstreamConnectionsCloseNotify: "upstream_cx_close_notify",
  /** The host reads too slowly, and the client does. */
  upstreamBackedUp: "upstream_flow_control_backed_up_total",
  upstreamDrained: "upstream_flow_control_drained_total",
  upstreamPausedReading: "upstream_flow_control_paused_reading_total",
  upstreamResumedReading: "upstream_flow_control_resumed_reading_total",
  upstreamBytesReceived: "upstream_cx_rx_bytes_total",
  upstreamBytesSent: "upstream_cx_tx_bytes_total",
  upstreamProtocolErrors: "upstream_cx_protocol_error",
  noHealthyHosts: "upstream_cx_none_healthy",
  /** A header named no address, where one is believed. */
  originalDstHostInvalid: "original_dst_host_invalid",
  membershipChanges: "membership_change",
} as const;

const gauges = {
  upstreamRequestsActive: "upstream_rq_active",
  upstreamRequestsPendingActive: "upstream_rq_pending_active",
  /** Retries under way; not shown by Envoy but as `remaining_retries`. */
  upstreamRetriesActive: "upstream_rq_retry_active",
  upstreamConnectionsActive: "upstream_cx_active",
  /** 1 while a limit of the cluster's is reached. */
  connectionsOpen: "circuit_breakers.default.cx_open",
  requestsOpen: "circuit_breakers.default.rq_open",
  pendingRequestsOpen: "circuit_breakers.default.rq_pending_open",
  retriesOpen: "circuit_breakers.default.rq_retry_open",
  membershipTotal: "membership_total",
  membershipHealthy: "membership_healthy",
  membershipDegraded: "membership_degraded",
  membershipExcluded: "membership_excluded",
} as const;

/** Counters of `cluster.<name>.…` that the data path adds to; resolved once when the cluster is compiled. */
export interface ClusterStats extends Counters<typeof counters>, Gauges<typeof gauges> {
  readonly answers: AnswerStats;
  readonly lives: ConnectionLives;
}

export function clusterScope(observabilityName: string): StatScope {
  return { root: "cluster", name: observabilityName, label: "envoy_cluster_name" };
}

/** `ownZone` is the proxy's, where it is in one. */
export function makeClusterStats(metrics: MetricRegistry, observabilityName: string, ownZone = ""): ClusterStats {
  const scope = clusterScope(observabilityName);
  const counted = counterGroup(metrics, scope, counters);
  const { upstreamRequests2xx, upstreamRequests3xx, upstreamRequests4xx, upstreamRequests5xx } = counted;
  const byClass = [undefined, upstreamRequests2xx, upstreamRequests3xx, upstreamRequests4xx, upstreamRequests5xx];
  return {
    ...counted,
    ...gaugeGroup(metrics, scope, gauges),
    answers: new AnswerStats(metrics, scope, byClass, ownZone),
    lives: new ConnectionLives(metrics, scope),
  };
}
