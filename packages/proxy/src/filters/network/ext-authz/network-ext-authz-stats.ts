// The filter's counters under Envoy's names: `ext_authz.<prefix>ok`.
import type { Gauge, MetricRegistry } from "@tulle/telemetry";
import { type Counters, eachOf } from "../../../stats/stat-description.ts";

const counters = {
  total: "total",
  ok: "ok",
  denied: "denied",
  error: "error",
  disabled: "disabled",
  failureModeAllowed: "failure_mode_allowed",
  closed: "cx_closed",
} as const;

export interface NetworkExtAuthzStats extends Counters<typeof counters> {
  readonly active: Gauge;
}

export function makeNetworkExtAuthzStats(metrics: MetricRegistry, statPrefix: string): NetworkExtAuthzStats {
  const named = (stat: string) => ({
    name: `envoy_ext_authz_${stat}`,
    labels: { envoy_ext_authz_prefix: statPrefix.replace(/\.$/, "") },
    statName: `ext_authz.${statPrefix}.${stat}`,
  });
  return { ...eachOf(counters, (stat) => metrics.counter(named(stat))), active: metrics.gauge(named("active")) };
}
