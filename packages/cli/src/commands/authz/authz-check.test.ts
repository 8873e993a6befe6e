// Which policies a proxy's configuration is said to hold.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type EnforcedPolicy, enforcedPolicies } from "../../proxy-admin/enforced-policies.ts";
import { policiesText } from "./authz-check.ts";
import type { AuthorizationFilterDump, AuthorizationRulesDump, ListenerDump } from "../../proxy-admin/proxy-dump.ts";

const key = (name: string, rule = 0, suffix = ""): string => `ns[shop]-policy[${name}]-rule[${rule}]${suffix}`;

function rules(action: string | undefined, ...keys: readonly string[]): AuthorizationRulesDump {
  const policies = Object.fromEntries(keys.map((each) => [each, {}]));
  return action === undefined ? { policies } : { action, policies };
}

function httpListener(...filters: readonly AuthorizationFilterDump[]) {
  const type = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC";
  const httpFilters = filters.map((each) => ({ name: "rbac", typed_config: { "@type": type, ...each } }));
  const chain = { filters: [{ name: "hcm", typed_config: { http_filters: [{ name: "router" }, ...httpFilters] } }] };
  // Encrypted and plain callers have a chain each.
  return { name: "127.9.9.1_3000", filter_chains: [chain, chain] };
}

function tcpListener(dump: AuthorizationRulesDump): ListenerDump {
  const type = "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC";
  return {
    name: "127.9.9.1_4000",
    filter_chains: [
      { filters: [{ name: "rbac", typed_config: { "@type": type, rules: dump } }, { name: "tcp_proxy" }] },
    ],
  };
}

const policy = (
  action: EnforcedPolicy["action"],
  name: string,
  more: Partial<EnforcedPolicy> = {},
): EnforcedPolicy => ({
  action,
  dryRun: false,
  name,
  namespace: "shop",
  rules: 1,
  ...more,
});

const cases: readonly { name: string; listeners: readonly ListenerDump[]; expected: readonly EnforcedPolicy[] }[] = [
  { name: "none", listeners: [{ name: "a" }, { name: "b", filter_chains: [{}] }], expected: [] },
  {
    name: "each once, with its rules, in the order in which they are asked",
    listeners: [
      httpListener(
        { rules: rules(undefined, key("b"), key("a", 0), key("a", 1)) },
        { rules: rules("DENY", key("c")) },
        { rules: rules("LOG", key("d")) },
      ),
    ],
    expected: [policy("AUDIT", "d"), policy("DENY", "c"), policy("ALLOW", "a", { rules: 2 }), policy("ALLOW", "b")],
  },
  {
    name: "on trial, beside those that hold",
    listeners: [httpListener({ rules: rules("ALLOW", key("a")), shadow_rules: rules("ALLOW", key("b")) })],
    expected: [policy("ALLOW", "a"), policy("ALLOW", "b", { dryRun: true })],
  },
  {
    name: "CUSTOM that nobody can answer",
    listeners: [httpListener({ rules: rules("DENY", key("a", 0, "-deny-due-to-bad-CUSTOM-action")) })],
    expected: [policy("CUSTOM", "a")],
  },
  {
    name: "CUSTOM with an authorizer to ask, and on trial",
    listeners: [
      httpListener(
        {
          shadow_rules: rules("DENY", `istio-ext-authz-my-opa-${key("a")}`),
          shadow_rules_stat_prefix: "istio_ext_authz_",
        },
        { shadow_rules: rules("DENY", key("b")), shadow_rules_stat_prefix: "istio_dry_run_custom_" },
        { shadow_rules: rules("DENY", key("c")), shadow_rules_stat_prefix: "istio_dry_run_deny_" },
      ),
    ],
    expected: [policy("CUSTOM", "a"), policy("CUSTOM", "b", { dryRun: true }), policy("DENY", "c", { dryRun: true })],
  },
  {
    name: "ports without requests count with those that have them",
    listeners: [
      httpListener({ rules: rules("DENY", key("a", 0), key("a", 1)) }),
      tcpListener(rules("DENY", key("a", 1))),
    ],
    expected: [policy("DENY", "a", { rules: 2 })],
  },
  {
    name: "names of another control plane",
    listeners: [tcpListener(rules(undefined, "mine"))],
    expected: [policy("ALLOW", "mine", { namespace: "" })],
  },
];

for (const { name, listeners, expected } of cases) {
  test(name, () => assert.deepEqual(enforcedPolicies(listeners), expected));
}

test("text", () => {
  const policies = [policy("DENY", "readers"), policy("ALLOW", "all", { dryRun: true, rules: 2 })];
  assert.equal(
    policiesText("catalog.shop", policies, undefined),
    `ACTION              AuthorizationPolicy     RULES
DENY                readers.shop            1
ALLOW (dry run)     all.shop                2
`,
  );
  assert.equal(
    policiesText("a.shop", [], undefined),
    "No AuthorizationPolicy holds for a.shop: it answers everyone.\n",
  );
});
