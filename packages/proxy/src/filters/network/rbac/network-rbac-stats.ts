// The filter's counters under Envoy's names: `<stat_prefix>rbac.allowed`, and for Prometheus the prefix as a label.
// Envoy reads Istio's prefix `tcp.` as that of a TCP proxy called `rbac` there; that is left to it.
import type { Counter, MetricRegistry } from "@tulle/telemetry";

export interface NetworkRbacStats {
  readonly allowed: Counter;
  readonly denied: Counter;
  readonly shadowAllowed: Counter;
  readonly shadowDenied: Counter;
}

export function makeNetworkRbacStats(
  metrics: MetricRegistry,
  statPrefix: string,
  shadowRulesStatPrefix: string,
): NetworkRbacStats {
  const counter = (prefix: string, stat: string): Counter =>
    metrics.counter({
      name: `envoy_rbac_${stat}`,
      labels: {
        envoy_rbac_prefix: statPrefix.replace(/\.$/, ""),
        ...(prefix !== "" && { envoy_rbac_rules_prefix: prefix }),
      },
      statName: `${withDot(statPrefix)}rbac.${withDot(prefix)}${stat}`,
    });
  return {
    allowed: counter("", "allowed"),
    denied: counter("", "denied"),
    shadowAllowed: counter(shadowRulesStatPrefix, "shadow_allowed"),
    shadowDenied: counter(shadowRulesStatPrefix, "shadow_denied"),
  };
}

function withDot(prefix: string): string {
  return prefix === "" || prefix.endsWith(".") ? prefix : `${prefix}.`;
}
