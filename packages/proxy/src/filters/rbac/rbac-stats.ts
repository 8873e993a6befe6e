// The filter's counters under Envoy's names: `http.<connection manager>.rbac.<prefix>allowed`.
import type { Counter, MetricRegistry } from "@tulle/telemetry";

/** The counter of one policy, made when it is asked for the first time (track_per_rule_stats). */
export type PolicyCounter = (policy: string) => Counter;

export interface RbacStats {
  readonly allowed: Counter;
  readonly denied: Counter;
  readonly shadowAllowed: Counter;
  readonly shadowDenied: Counter;
  readonly policyAllowed: PolicyCounter;
  readonly policyDenied: PolicyCounter;
  readonly policyShadowAllowed: PolicyCounter;
  readonly policyShadowDenied: PolicyCounter;
}

export interface RbacStatsOptions {
  readonly metrics: MetricRegistry;
  /** The connection manager's. */
  readonly statPrefix: string;
  readonly rulesStatPrefix: string;
  readonly shadowRulesStatPrefix: string;
}

export function makeRbacStats(options: RbacStatsOptions): RbacStats {
  const prefix = withDot(options.rulesStatPrefix);
  const shadowPrefix = withDot(options.shadowRulesStatPrefix);
  const counter = (stat: string): Counter => rbacCounter(options, stat);
  return {
    allowed: counter(`${prefix}allowed`),
    denied: counter(`${prefix}denied`),
    shadowAllowed: counter(`${shadowPrefix}shadow_allowed`),
    shadowDenied: counter(`${shadowPrefix}shadow_denied`),
    policyAllowed: kept((policy) => counter(`${prefix}policy.${policy}.allowed`)),
    policyDenied: kept((policy) => counter(`${prefix}policy.${policy}.denied`)),
    policyShadowAllowed: kept((policy) => counter(`${shadowPrefix}policy.${policy}.shadow_allowed`)),
    policyShadowDenied: kept((policy) => counter(`${shadowPrefix}policy.${policy}.shadow_denied`)),
  };
}

function withDot(prefix: string): string {
  return prefix === "" || prefix.endsWith(".") ? prefix : `${prefix}.`;
}

function rbacCounter({ metrics, statPrefix }: RbacStatsOptions, stat: string): Counter {
  return metrics.counter({
    name: `envoy_http_rbac_${stat.replaceAll(/[^A-Za-z0-9_]/g, "_")}`,
    labels: { envoy_http_conn_manager_prefix: statPrefix },
    statName: `http.${statPrefix.replaceAll(":", "_")}.rbac.${stat}`,
  });
}

function kept(make: PolicyCounter): PolicyCounter {
  const made = new Map<string, Counter>();
  return (policy) => {
    let counter = made.get(policy);
    if (counter === undefined) made.set(policy, (counter = make(policy)));
    return counter;
  };
}
