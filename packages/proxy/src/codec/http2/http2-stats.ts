// The counters of HTTP/2 under Envoy's names: `http2.<stat>` for all clients, `cluster.<name>.http2.<stat>` for the
// hosts of a cluster.
import type { MetricRegistry } from "@tulle/telemetry";
import { type Counters, eachOf, type StatScope, statDescription } from "../../stats/stat-description.ts";

const counters = {
  /** Streams that the peer reset, and that we did. */
  resetsReceived: "rx_reset",
  resetsSent: "tx_reset",
  goAwaysSent: "goaway_sent",
  trailers: "trailers",
  /** Heads beyond our limits, and messages that are none. */
  headersOverflow: "header_overflow",
  messagingErrors: "rx_messaging_error",
  /** Pings without an answer. */
  keepAliveTimeouts: "keepalive_timeout",
  inbound_empty_frames_flood: "inbound_empty_frames_flood",
  inbound_priority_frames_flood: "inbound_priority_frames_flood",
  inbound_window_update_frames_flood: "inbound_window_update_frames_flood",
  outbound_flood: "outbound_flood",
  outbound_control_flood: "outbound_control_flood",
  /** These Envoy counts under its overload manager, not at all, and as a messaging error. */
  inbound_reset_flood: "inbound_reset_flood",
  inbound_settings_flood: "inbound_settings_flood",
  inbound_continuation_flood: "inbound_continuation_flood",
} as const;

export type Http2Stats = Counters<typeof counters>;

/**
 * Made when the first connection speaks HTTP/2: most clusters have none. `scope` undefined = that of all clients.
 */
export function http2StatsOf(metrics: MetricRegistry, scope?: StatScope): () => Http2Stats {
  let made: Http2Stats | undefined;
  return () =>
    (made ??= eachOf(counters, (stat) =>
      metrics.counter(
        scope === undefined
          ? { name: `envoy_http2_${stat}`, labels: {}, statName: `http2.${stat}` }
          : statDescription(scope, `http2.${stat}`),
      ),
    ));
}
