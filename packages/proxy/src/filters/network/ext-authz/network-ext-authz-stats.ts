// The filter's counters under Envoy's names: `ext_authz.<prefix>ok`.
import type { Counter, Gauge, MetricRegistry } from "@tulle/telemetry";

const counters = {
  total: "total",
  ok: "ok",
  denied: "denied",
  error: "error",
  disabled: "disabled",
  failureModeAllowed: "failure_mode_allowed",
  closed: "cx_closed",
} as const;

export type NetworkExtAuthzStats = { readonly [name in keyof typeof counters]: Counter } & { readonly active: Gauge };

export function makeNetworkExtAuthzStats(metrics: MetricRegistry, statPrefix: string): NetworkExtAuthzStats {
  const named = (stat: string) => ({
    name: `envoy_ext_authz_${stat}`,
    labels: { envoy_ext_authz_prefix: statPrefix.replace(/\.$/, "") },
    statName: `ext_authz.${statPrefix}.${stat}`,
  });
  const made = Object.entries(counters).map(([key, stat]) => [key, metrics.counter(named(stat))] as const);
  return { ...Object.fromEntries(made), active: metrics.gauge(named("active")) } as unknown as NetworkExtAuthzStats;
}
