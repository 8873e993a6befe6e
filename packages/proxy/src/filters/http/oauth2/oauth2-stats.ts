// The filter's counters under Envoy's names: `http.<connection manager>.<stat prefix>oauth_success`.
import type { Counter, MetricRegistry } from "@tulle/telemetry";
import { type Counters, eachOf } from "../../../stats/stat-description.ts";

const names = {
  unauthorized: "oauth_unauthorized_rq",
  failure: "oauth_failure",
  passthrough: "oauth_passthrough",
  success: "oauth_success",
  refreshSuccess: "oauth_refreshtoken_success",
  refreshFailure: "oauth_refreshtoken_failure",
  allowFailed: "oauth_allow_failed_passthrough",
} as const;

export type OAuth2Stats = Counters<typeof names>;

export function makeOAuth2Stats(metrics: MetricRegistry, managerPrefix: string, filterPrefix: string): OAuth2Stats {
  const counter = (stat: string): Counter =>
    metrics.counter({
      name: `envoy_http_${stat}`,
      labels: {
        envoy_http_conn_manager_prefix: managerPrefix,
        ...(filterPrefix !== "" && { envoy_oauth2_prefix: filterPrefix.replace(/\.$/, "") }),
      },
      statName: `http.${managerPrefix.replaceAll(":", "_")}.${filterPrefix}${stat}`,
    });
  return eachOf(names, counter);
}
