// The series of an HTTP connection manager under Envoy's names: `http.<stat_prefix>.downstream_rq_total`.
import type { Histogram, MetricRegistry } from "@tulle/telemetry";
import {
  type Counters,
  counterGroup,
  eachOf,
  type Gauges,
  gaugeGroup,
  statDescription,
} from "../stats/stat-description.ts";

const counters = {
  downstreamConnectionsTotal: "downstream_cx_total",
  downstreamConnectionsDestroyed: "downstream_cx_destroy",
  /** By us, and by the client; and of both those with a request that was not answered. */
  downstreamConnectionsDestroyedLocal: "downstream_cx_destroy_local",
  downstreamConnectionsDestroyedRemote: "downstream_cx_destroy_remote",
  downstreamConnectionsDestroyedActive: "downstream_cx_destroy_active_rq",
  downstreamConnectionsDestroyedLocalActive: "downstream_cx_destroy_local_active_rq",
  downstreamConnectionsDestroyedRemoteActive: "downstream_cx_destroy_remote_active_rq",
  /** Told to end, as their listener or filter chain is going. */
  downstreamConnectionsDrained: "downstream_cx_drain_close",
  downstreamUpgrades: "downstream_cx_upgrades_total",
  downstreamConnectionsHttp1: "downstream_cx_http1_total",
  downstreamConnectionsHttp2: "downstream_cx_http2_total",
  downstreamConnectionsTls: "downstream_cx_ssl_total",
  downstreamRequestsTotal: "downstream_rq_total",
  downstreamRequestsHttp1: "downstream_rq_http1_total",
  downstreamRequestsHttp2: "downstream_rq_http2_total",
  downstreamRequestsCompleted: "downstream_rq_completed",
  downstreamRequests1xx: "downstream_rq_1xx",
  downstreamRequests2xx: "downstream_rq_2xx",
  downstreamRequests3xx: "downstream_rq_3xx",
  downstreamRequests4xx: "downstream_rq_4xx",
  downstreamRequests5xx: "downstream_rq_5xx",
  /** Of these the head was sent before the request had come to its end. */
  downstreamResponsesBeforeRequestEnd: "downstream_rq_response_before_rq_complete",
  /** The client was not read from, as somebody behind us was slow. */
  downstreamPausedReading: "downstream_flow_control_paused_reading_total",
  downstreamResumedReading: "downstream_flow_control_resumed_reading_total",
  downstreamTooManyResets: "downstream_rq_too_many_premature_resets",
  downstreamProtocolErrors: "downstream_cx_protocol_error",
  /** Connections that reached a limit of theirs. */
  downstreamConnectionsIdleTimeout: "downstream_cx_idle_timeout",
  downstreamConnectionsDelayedCloseTimeout: "downstream_cx_delayed_close_timeout",
  downstreamConnectionsMaxDuration: "downstream_cx_max_duration_reached",
  downstreamConnectionsMaxRequests: "downstream_cx_max_requests_reached",
  /** Requests that were cut off by the client, by us, and by each of the time-outs. */
  downstreamRequestsRemoteReset: "downstream_rq_rx_reset",
  downstreamRequestsLocalReset: "downstream_rq_tx_reset",
  downstreamRequestsHeaderTimeout: "downstream_rq_header_timeout",
  downstreamRequestsTimeout: "downstream_rq_timeout",
  downstreamRequestsIdleTimeout: "downstream_rq_idle_timeout",
  downstreamRequestsMaxDuration: "downstream_rq_max_duration_reached",
  /** Requests answered 503, and connections ended with their answer, because of overload. */
  downstreamRequestsOverloadClose: "downstream_rq_overload_close",
  downstreamConnectionsOverloadDisableKeepalive: "downstream_cx_overload_disable_keepalive",
  downstreamBytesReceived: "downstream_cx_rx_bytes_total",
  downstreamBytesSent: "downstream_cx_tx_bytes_total",
} as const;

/** Of requests that went no further, by the `%RESPONSE_CODE_DETAILS%` of their answer. */
const refusals = {
  absolute_path_rejected: "downstream_rq_non_relative_path",
  path_normalization_failed: "downstream_rq_failed_path_normalization",
  path_normalization_redirected: "downstream_rq_redirected_with_normalized_path",
  request_payload_too_large: "downstream_rq_too_large",
  upgrade_failed: "downstream_rq_ws_on_non_ws_route",
} as const;

const gauges = {
  downstreamConnectionsActive: "downstream_cx_active",
  downstreamConnectionsHttp1Active: "downstream_cx_http1_active",
  downstreamConnectionsHttp2Active: "downstream_cx_http2_active",
  downstreamConnectionsTlsActive: "downstream_cx_ssl_active",
  downstreamUpgradesActive: "downstream_cx_upgrades_active",
  /** At the end of their life, and waiting for one more request. */
  downstreamConnectionsHttp1Ending: "downstream_cx_http1_soft_drain",
  downstreamRequestsActive: "downstream_rq_active",
} as const;

export interface HttpConnectionManagerStats extends Counters<typeof counters>, Gauges<typeof gauges> {
  readonly refusals: Counters<typeof refusals>;
  readonly downstreamRequestTimeMs: Histogram;
  readonly downstreamConnectionLengthMs: Histogram;
}

const listenerCounters = {
  completed: "downstream_rq_completed",
  requests1xx: "downstream_rq_1xx",
  requests2xx: "downstream_rq_2xx",
  requests3xx: "downstream_rq_3xx",
  requests4xx: "downstream_rq_4xx",
  requests5xx: "downstream_rq_5xx",
} as const;

/** The same requests once more, by listener: `listener.<address>.http.<stat_prefix>.downstream_rq_2xx`. */
export type ListenerRequestStats = Counters<typeof listenerCounters>;

export function makeListenerRequestStats(
  metrics: MetricRegistry,
  listener: string,
  statPrefix: string,
): ListenerRequestStats {
  const scope = { root: "http", name: statPrefix, label: "envoy_http_conn_manager_prefix" };
  return eachOf(listenerCounters, (stat) => {
    const { name, labels, statName } = statDescription(scope, stat);
    return metrics.counter({
      name: name.replace(/^envoy_http_/, "envoy_listener_http_"),
      labels: { ...labels, envoy_listener_address: listener },
      statName: `listener.${listener.replaceAll(":", "_")}.${statName}`,
    });
  });
}

export function makeHttpConnectionManagerStats(
  metrics: MetricRegistry,
  statPrefix: string,
): HttpConnectionManagerStats {
  const scope = { root: "http", name: statPrefix, label: "envoy_http_conn_manager_prefix" };
  return {
    ...counterGroup(metrics, scope, counters),
    ...gaugeGroup(metrics, scope, gauges),
    refusals: counterGroup(metrics, scope, refusals),
    downstreamRequestTimeMs: metrics.histogram(statDescription(scope, "downstream_rq_time")),
    downstreamConnectionLengthMs: metrics.histogram(statDescription(scope, "downstream_cx_length_ms")),
  };
}
