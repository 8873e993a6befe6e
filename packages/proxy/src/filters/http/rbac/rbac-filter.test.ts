// What the filter leaves behind: metrics by Envoy's names and labels, metadata for the access log. The parity table has
// the rest.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricRegistry } from "@tulle/telemetry";
import { RBACSchema } from "@tulle/xds/envoy/extensions/filters/http/rbac/v3/rbac_pb";
import { detachedScope } from "../../../fields/compile-scope.ts";
import { askFilter, compileFilter } from "../../../testing/filter-probe.ts";

const any = [{ any: true }];
const onPath = (prefix: string): object => ({ permissions: [{ url_path: { path: { prefix } } }], principals: any });

test("counters have Envoy's labels", () => {
  const metrics = new MetricRegistry();
  const { filter, problems } = compileFilter(
    RBACSchema,
    {
      rules: { action: "DENY", policies: { "ns[shop]-policy[p]-rule[0]": onPath("/a") } },
      rules_stat_prefix: "rules",
      shadow_rules: { action: "ALLOW", policies: { dry: onPath("/b") } },
      shadow_rules_stat_prefix: "istio_dry_run_allow_",
      track_per_rule_stats: true,
    },
    detachedScope({ metrics }),
  );
  assert.deepEqual(problems, []);
  for (const path of ["/a", "/b", "/b/c"]) askFilter(filter!, { path });
  const lines = metrics.page(undefined).text.split("\n");
  assert.deepEqual(
    lines.filter((line) => line.startsWith("envoy_http_rbac")),
    [
      'envoy_http_rbac_allowed{envoy_rbac_http_prefix="rules",envoy_http_conn_manager_prefix="test"} 2',
      'envoy_http_rbac_denied{envoy_rbac_http_prefix="rules",envoy_http_conn_manager_prefix="test"} 1',
      'envoy_http_rbac_policy_denied{envoy_rbac_policy_name="ns[shop]-policy[p]-rule[0]",envoy_rbac_http_prefix="rules",envoy_http_conn_manager_prefix="test"} 1',
      'envoy_http_rbac_policy_shadow_allowed{envoy_rbac_policy_name="dry",envoy_rbac_http_prefix="istio_dry_run_allow_",envoy_http_conn_manager_prefix="test"} 2',
      'envoy_http_rbac_shadow_allowed{envoy_rbac_http_prefix="istio_dry_run_allow_",envoy_http_conn_manager_prefix="test"} 2',
      'envoy_http_rbac_shadow_denied{envoy_rbac_http_prefix="istio_dry_run_allow_",envoy_http_conn_manager_prefix="test"} 1',
    ],
  );
});

test("rules that only log let everything pass and hint at the access log", () => {
  const { filter } = compileFilter(RBACSchema, { rules: { action: "LOG", policies: { p: onPath("/a") } } });
  for (const [path, hint] of [
    ["/a", true],
    ["/b", false],
  ] as const) {
    const { status, info } = askFilter(filter!, { path });
    assert.equal(status, "continue");
    assert.deepEqual(info.dynamicMetadata?.["envoy.common"], { access_log_hint: hint });
  }
});

test("a refusal names the policy, without spaces", () => {
  const { filter } = compileFilter(RBACSchema, { rules: { action: "DENY", policies: { "no way.in": onPath("/") } } });
  const { status, reply } = askFilter(filter!, {});
  assert.equal(status, "stop");
  assert.deepEqual(reply, {
    status: 403,
    body: "RBAC: access denied",
    details: "rbac_access_denied_matched_policy[no_way.in]",
  });
});

test("matchers are refused", () => {
  const { problems } = compileFilter(RBACSchema, { matcher: {}, shadow_matcher: {} });
  assert.deepEqual(problems, ["matcher: this field is not supported", "shadow_matcher: this field is not supported"]);
});
