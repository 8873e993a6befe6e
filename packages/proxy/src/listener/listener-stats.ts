// The series of a listener under Envoy's names: `listener.<address>.downstream_cx_total`.
import type { Histogram, MetricRegistry } from "@tulle/telemetry";
import { type Counters, counterGroup, type Gauges, gaugeGroup, statDescription } from "../stats/stat-description.ts";

const counters = {
  connectionsTotal: "downstream_cx_total",
  connectionsDestroyed: "downstream_cx_destroy",
  noFilterChainMatch: "no_filter_chain_match",
  /** Closed at once because there were too many of all listeners, or because of overload. */
  globalOverflow: "downstream_global_cx_overflow",
  overloadRejected: "downstream_cx_overload_reject",
  preConnectionTimeouts: "downstream_pre_cx_timeout",
  /** Not Envoy's: of those the ones whose client had said nothing. */
  silentTimeouts: "downstream_pre_cx_silent",
  /** Not Envoy's: the server was known to speak first, and the client was not waited for. */
  serverFirst: "downstream_pre_cx_server_first",
  listenerFilterErrors: "downstream_listener_filter_error",
  listenerFilterRemoteCloses: "downstream_listener_filter_remote_close",
} as const;

const gauges = {
  connectionsActive: "downstream_cx_active",
  /** Connections that listener filters look at. */
  preConnectionsActive: "downstream_pre_cx_active",
} as const;

export interface ListenerStats extends Counters<typeof counters>, Gauges<typeof gauges> {
  readonly connectionLengthMs: Histogram;
}

export function makeListenerStats(metrics: MetricRegistry, name: string): ListenerStats {
  const scope = { root: "listener", name, label: "envoy_listener_address" };
  return {
    ...counterGroup(metrics, scope, counters),
    ...gaugeGroup(metrics, scope, gauges),
    connectionLengthMs: metrics.histogram(statDescription(scope, "downstream_cx_length_ms")),
  };
}
