// The filter's counters under Envoy's names: `http.<connection manager>.rbac.<prefix>.allowed`, and for
// Prometheus the prefix and the policy as labels.
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
  const { rulesStatPrefix, shadowRulesStatPrefix } = options;
  const counter = (prefix: string, stat: string, policy?: string): Counter => {
    const { metrics, statPrefix } = options;
    const inside = policy === undefined ? stat : `policy.${policy}.${stat}`;
    return metrics.counter({
      name: `envoy_http_rbac_${policy === undefined ? "" : "policy_"}${stat}`,
      labels: {
        ...(policy !== undefined && { envoy_rbac_policy_name: policy }),
        ...(prefix !== "" && { envoy_rbac_http_prefix: prefix }),
        envoy_http_conn_manager_prefix: statPrefix,
      },
      statName: `http.${statPrefix.replaceAll(":", "_")}.rbac.${withDot(prefix)}${inside}`,
    });
  };
  return {
    allowed: counter(rulesStatPrefix, "allowed"),
    denied: counter(rulesStatPrefix, "denied"),
    shadowAllowed: counter(shadowRulesStatPrefix, "shadow_allowed"),
    shadowDenied: counter(shadowRulesStatPrefix, "shadow_denied"),
    policyAllowed: kept((policy) => counter(rulesStatPrefix, "allowed", policy)),
    policyDenied: kept((policy) => counter(rulesStatPrefix, "denied", policy)),
    policyShadowAllowed: kept((policy) => counter(shadowRulesStatPrefix, "shadow_allowed", policy)),
    policyShadowDenied: kept((policy) => counter(shadowRulesStatPrefix, "shadow_denied", policy)),
  };
}

function withDot(prefix: string): string {
  return prefix === "" || prefix.endsWith(".") ? prefix : `${prefix}.`;
}

function kept(make: PolicyCounter): PolicyCounter {
  const made = new Map<string, Counter>();
  return (policy) => {
    let counter = made.get(policy);
    if (counter === undefined) made.set(policy, (counter = make(policy)));
    return counter;
  };
}
