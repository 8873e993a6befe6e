// The counters of a TCP proxy under Envoy's names: `tcp.<stat_prefix>.downstream_cx_total`.
import type { Gauge, MetricRegistry } from "@tulle/telemetry";
import { type Counters, counterGroup, statDescription } from "../../../stats/stat-description.ts";

const counters = {
  connectionsTotal: "downstream_cx_total",
  noRoute: "downstream_cx_no_route",
  bytesReceived: "downstream_cx_rx_bytes_total",
  bytesSent: "downstream_cx_tx_bytes_total",
  pausedReading: "downstream_flow_control_paused_reading_total",
  resumedReading: "downstream_flow_control_resumed_reading_total",
  idleTimeouts: "idle_timeout",
  maxDurations: "max_downstream_connection_duration",
  upstreamFlushTotal: "upstream_flush_total",
} as const;

export interface TcpProxyStats extends Counters<typeof counters> {
  /** Connections whose client has gone, and whose host still takes what it sent. */
  readonly upstreamFlushActive: Gauge;
}

export function makeTcpProxyStats(metrics: MetricRegistry, statPrefix: string): TcpProxyStats {
  const scope = { root: "tcp", name: statPrefix, label: "envoy_tcp_prefix" };
  return {
    ...counterGroup(metrics, scope, counters),
    upstreamFlushActive: metrics.gauge(statDescription(scope, "upstream_flush_active")),
  };
}
