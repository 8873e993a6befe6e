// What the router is told by its configuration, and what it counts.
import type { Counter } from "@tulle/telemetry";

/** What `Router` sets; the rest of its fields is refused or warned of where the configuration is read. */
export interface RouterFilterConfig {
  /** No `x-envoy-upstream-service-time` and kin (suppress_envoy_headers). */
  readonly suppressEnvoyHeaders: boolean;
  /** Take `x-envoy-expected-rq-timeout-ms` of an earlier proxy as the time-out (respect_expected_rq_timeout). */
  readonly respectExpectedRequestTimeout: boolean;
  readonly stats: RouterStats;
}

/** Envoy: `http.<stat_prefix>.rq_total`, `rq_direct_response`, `no_route` and `no_cluster`. */
export interface RouterStats {
  /** All that came as far as the router, and those that a route answered by itself. */
  readonly requests: Counter;
  readonly directResponses: Counter;
  readonly noRoute: Counter;
  readonly noCluster: Counter;
  /** Answers of gRPC that broke off. */
  readonly cutOff: Counter;
}
