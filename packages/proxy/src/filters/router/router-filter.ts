// The terminal HTTP filter: it chooses a host, sends the request upstream, tries again by the route's retry policy and
// carries the answer back (Envoy: extensions.filters.http.router.v3.Router).
import type { HttpFilter } from "../../http/filter.ts";

export const routerFilterName = "envoy.filters.http.router";

/** What `Router` sets; the rest of its fields is refused or warned of where the configuration is read. */
export interface RouterFilterConfig {
  /** No `x-envoy-upstream-service-time` and kin (suppress_envoy_headers). */
  readonly suppressEnvoyHeaders: boolean;
  /** Take `x-envoy-expected-rq-timeout-ms` of an earlier proxy as the time-out (respect_expected_rq_timeout). */
  readonly respectExpectedRequestTimeout: boolean;
}

export function createRouterFilter(_config: RouterFilterConfig): HttpFilter {
  return { name: routerFilterName };
}
