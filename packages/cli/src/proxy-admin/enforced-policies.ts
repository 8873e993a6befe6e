// The AuthorizationPolicies that a proxy enforces, read from what it runs with and not from what was applied.
import type { AuthorizationRulesDump, ListenerDump } from "./proxy-dump.ts";

/** In the order in which a proxy asks them. */
const actions = ["CUSTOM", "AUDIT", "DENY", "ALLOW"] as const;

/** Of shadow rules that decide whether the next filter asks an authorizer (Istio: authz/builder/extauthz.go). */
const askingPrefix = "istio_ext_authz_";
const customOnTrialPrefix = "istio_dry_run_custom_";

type Action = (typeof actions)[number];

export interface EnforcedPolicy {
  readonly action: Action;
  /** Evaluated and counted; decides nothing. */
  readonly dryRun: boolean;
  readonly name: string;
  readonly namespace: string;
  /** Rules that the proxy holds; ports without requests leave some out. */
  readonly rules: number;
}

/** Each policy once, however many listeners and filter chains hold it. */
export function enforcedPolicies(listeners: readonly ListenerDump[]): readonly EnforcedPolicy[] {
  const found = new Map<string, { policy: Omit<EnforcedPolicy, "rules">; rules: Set<string> }>();
  const add = (dump: AuthorizationRulesDump | undefined, dryRun: boolean, isCustomFilter: boolean): void => {
    for (const key of Object.keys(dump?.policies ?? {})) {
      const { name, namespace, rule, isCustom } = partsOf(key);
      const action = isCustom || isCustomFilter ? "CUSTOM" : actionOf(dump?.action);
      const id = JSON.stringify([action, dryRun, namespace, name]);
      const entry = found.get(id) ?? { policy: { action, dryRun, name, namespace }, rules: new Set() };
      found.set(id, entry);
      entry.rules.add(rule);
    }
  };
  for (const filter of listeners.flatMap(authorizationFilters)) {
    add(filter.rules, false, false);
    const prefix = filter.shadow_rules_stat_prefix ?? "";
    add(filter.shadow_rules, prefix !== askingPrefix, prefix === askingPrefix || prefix === customOnTrialPrefix);
  }
  const policies = [...found.values()].map(({ policy, rules }) => ({ ...policy, rules: rules.size }));
  return policies.toSorted((a, b) => actions.indexOf(a.action) - actions.indexOf(b.action) || byName(a, b));
}

function byName(a: EnforcedPolicy, b: EnforcedPolicy): number {
  const [one, other] = [a, b].map(({ namespace, name, dryRun }) => `${namespace}/${name}/${dryRun}`);
  return one! < other! ? -1 : Number(one! > other!);
}

/** What the control plane has an Envoy refuse by itself, whatever the policies say: nobody's AuthorizationPolicy. */
const ownFilter = "tulle.hidden_dot_segments";

/** HTTP and network filters alike. */
function authorizationFilters({ filter_chains: chains = [] }: ListenerDump) {
  return chains.flatMap(({ filters = [] }) =>
    filters.flatMap(({ typed_config: config }) => {
      const configs = [
        config,
        ...(config?.http_filters ?? []).filter(({ name }) => name !== ownFilter).map((filter) => filter.typed_config),
      ];
      return configs
        .filter((each) => each !== undefined)
        .filter((each) => each["@type"]?.endsWith(".rbac.v3.RBAC") === true);
    }),
  );
}

/** Istio's keys, `ns[shop]-policy[readers]-rule[0]`. Other control planes have keys of their own, a rule each. */
function partsOf(key: string): { name: string; namespace: string; rule: string; isCustom: boolean } {
  const match = /^(?:istio-ext-authz-.*?-)?ns\[(.*?)\]-policy\[(.*?)\]-rule\[(.*?)\](.*)$/.exec(key);
  if (match === null) return { name: key, namespace: "", rule: "0", isCustom: false };
  const [, namespace = "", name = "", rule = "", suffix = ""] = match;
  return { name, namespace, rule, isCustom: suffix.includes("CUSTOM") || key.startsWith("istio-ext-authz-") };
}

function actionOf(action = "ALLOW"): Action {
  return action === "LOG" ? "AUDIT" : (actions.find((each) => each === action) ?? "ALLOW");
}

/** `readers.shop`, as Istio names policies in tables. */
export function policyName({ name, namespace }: EnforcedPolicy): string {
  return namespace === "" ? name : `${name}.${namespace}`;
}
