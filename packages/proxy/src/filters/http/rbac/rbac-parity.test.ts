// The same policies on this proxy and on a stock Envoy: every call must be let through or refused alike, for the same
// reason.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ParityListener } from "../../../testing/parity-bootstrap.ts";
import { type ParityCall, type ParityPair, type Seen, startParityPair } from "../../../testing/parity-pair.ts";

const any = [{ any: true }];
const rbacFilter = (config: object): object => ({
  name: "envoy.filters.http.rbac",
  typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC", ...config },
});
const perRoute = (rbac?: object): object => ({
  typed_per_filter_config: {
    "envoy.filters.http.rbac": {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute",
      ...(rbac && { rbac }),
    },
  },
});
const permit = (...permissions: readonly object[]): object => ({ permissions, principals: any });
const admit = (...principals: readonly object[]): object => ({ permissions: any, principals });
const allow = (policies: object): object => ({ rules: { action: "ALLOW", policies } });
const header = (name: string, string_match: object, rest: object = {}): object => ({
  header: { name, string_match, ...rest },
});
const path = (match: object): object => ({ url_path: { path: match } });

const listeners: readonly ParityListener[] = [
  { name: "none", filters: [rbacFilter({})] },
  { name: "empty", filters: [rbacFilter({ rules: {} })] },
  {
    name: "paths",
    filters: [
      rbacFilter(
        allow({
          exact: permit(path({ exact: "/exact" })),
          prefix: permit(path({ prefix: "/pre/" }), path({ prefix: "/pre/deep/" })),
          suffix: permit(path({ suffix: ".html" })),
          any_case: permit(path({ exact: "/Any", ignore_case: true }), path({ prefix: "/LOW", ignore_case: true })),
          contains: permit(path({ contains: "inner" })),
          regex: permit(path({ safe_regex: { regex: "/re/[0-9]+" } })),
        }),
      ),
    ],
  },
  {
    name: "headers",
    filters: [
      rbacFilter(
        allow({
          method: permit({ and_rules: { rules: [header(":method", { exact: "PUT" }), path({ exact: "/put" })] } }),
          host: permit(
            header(":authority", { exact: "a.test", ignore_case: true }),
            header(":authority", { suffix: ".wild.test", ignore_case: true }),
            header(":authority", { prefix: "b.test:", ignore_case: true }),
          ),
          present: permit({ header: { name: "x-present", present_match: true } }),
          value: permit(header("x-value", { exact: "one" }), header("x-value", { exact: "two,three" })),
          inverted: permit(header("x-not", { exact: "no" }, { invert_match: true })),
          empty: permit(header("x-empty", { exact: "" })),
          default: permit({
            and_rules: {
              rules: [
                { header: { name: "x-default", present_match: true } },
                header("x-default", { exact: "a" }, { invert_match: true, treat_missing_header_as_empty: true }),
              ],
            },
          }),
          not_rule: permit({
            and_rules: {
              rules: [
                { header: { name: "x-other", present_match: true } },
                { not_rule: header("x-other", { exact: "a" }) },
              ],
            },
          }),
        }),
      ),
    ],
  },
  {
    name: "deny",
    filters: [
      rbacFilter({
        rules: {
          action: "DENY",
          policies: {
            "ns[shop]-policy[no b c]-rule[0]": permit(path({ prefix: "/b" })),
            "a.first": permit(path({ prefix: "/b/a" })),
            unless: permit({ and_rules: { rules: [path({ prefix: "/c" }), { not_rule: path({ exact: "/c/but" }) }] } }),
          },
        },
        rules_stat_prefix: "deny",
        track_per_rule_stats: true,
      }),
    ],
  },
  {
    name: "addresses",
    manager: { use_remote_address: true, xff_num_trusted_hops: 1 },
    filters: [
      rbacFilter(
        allow({
          direct: {
            permissions: [path({ exact: "/direct" })],
            principals: [{ direct_remote_ip: { address_prefix: "127.0.0.0", prefix_len: 8 } }],
          },
          source: {
            permissions: [path({ exact: "/source" })],
            principals: [{ source_ip: { address_prefix: "127.0.0.1", prefix_len: 32 } }],
          },
          remote: admit(
            { remote_ip: { address_prefix: "10.1.0.0", prefix_len: 16 } },
            { remote_ip: { address_prefix: "2001:db8::", prefix_len: 32 } },
          ),
          local: permit({
            and_rules: {
              rules: [{ destination_ip: { address_prefix: "127.0.0.1", prefix_len: 32 } }, path({ exact: "/local" })],
            },
          }),
          elsewhere: permit({ destination_ip: { address_prefix: "10.0.0.0", prefix_len: 8 } }),
          port: permit({ destination_port: 1 }),
          range: permit({
            and_rules: { rules: [{ destination_port_range: { start: 1024, end: 65536 } }, path({ exact: "/range" })] },
          }),
        }),
      ),
    ],
  },
  {
    name: "peers",
    filters: [
      rbacFilter(
        allow({
          tls: admit({ authenticated: {} }),
          named: admit({ authenticated: { principal_name: { exact: "spiffe://cluster.local/ns/a/sa/b" } } }),
          nobody: admit({
            and_ids: { ids: [{ not_id: { authenticated: {} } }, header("x-plain", { exact: "yes" })] },
          }),
          server_name: permit({
            and_rules: { rules: [{ requested_server_name: { exact: "" } }, path({ exact: "/no-sni" })] },
          }),
          path: admit({ or_ids: { ids: [path({ exact: "/one" }), path({ exact: "/two" })] } }),
        }),
      ),
    ],
  },
  {
    name: "metadata",
    filters: [
      rbacFilter(
        allow({
          route: admit({
            sourced_metadata: {
              metadata_source: "ROUTE",
              metadata_matcher: {
                filter: "f",
                path: [{ key: "a" }, { key: "b" }],
                value: { string_match: { exact: "c" } },
              },
            },
          }),
          list: admit({
            sourced_metadata: {
              metadata_source: "ROUTE",
              metadata_matcher: {
                filter: "f",
                path: [{ key: "list" }],
                value: { list_match: { one_of: { string_match: { prefix: "tw" } } } },
              },
            },
          }),
          number: admit({
            sourced_metadata: {
              metadata_source: "ROUTE",
              metadata_matcher: {
                filter: "f",
                path: [{ key: "n" }],
                value: { double_match: { range: { start: 1, end: 2 } } },
              },
            },
          }),
          present: admit({
            sourced_metadata: {
              metadata_source: "ROUTE",
              metadata_matcher: { filter: "f", path: [{ key: "p" }], value: { present_match: true } },
            },
          }),
          missing: admit({
            and_ids: {
              ids: [
                path({ exact: "/missing" }),
                {
                  metadata: {
                    filter: "nobody",
                    path: [{ key: "x" }],
                    value: { string_match: { exact: "y" } },
                    invert: true,
                  },
                },
              ],
            },
          }),
        }),
      ),
    ],
    routes: [
      { match: { path: "/nested" }, metadata: { filter_metadata: { f: { a: { b: "c" } } } } },
      { match: { path: "/flat" }, metadata: { filter_metadata: { f: { a: "c" } } } },
      { match: { path: "/list" }, metadata: { filter_metadata: { f: { list: ["one", "two"] } } } },
      { match: { path: "/listless" }, metadata: { filter_metadata: { f: { list: "two" } } } },
      { match: { path: "/number" }, metadata: { filter_metadata: { f: { n: 1.5 } } } },
      { match: { path: "/numbers" }, metadata: { filter_metadata: { f: { n: 2 } } } },
      { match: { path: "/present" }, metadata: { filter_metadata: { f: { p: false } } } },
      { match: { path: "/object" }, metadata: { filter_metadata: { f: { p: { q: 1 } } } } },
      { match: { path: "/null" }, metadata: { filter_metadata: { f: { p: null } } } },
      { match: { prefix: "/" } },
    ],
  },
  {
    name: "shadow",
    filters: [
      rbacFilter({
        rules: { action: "ALLOW", policies: { get: permit(header(":method", { exact: "GET" })) } },
        shadow_rules: { action: "DENY", policies: { "no secrets": permit(path({ prefix: "/secret" })) } },
        shadow_rules_stat_prefix: "istio_dry_run_deny_",
        track_per_rule_stats: true,
      }),
    ],
    routes: [
      { match: { prefix: "/route/off" }, ...perRoute() },
      { match: { prefix: "/route/own" }, ...perRoute(allow({ own: permit(path({ suffix: "/yes" })) })) },
      {
        match: { prefix: "/route/shadow" },
        ...perRoute({
          shadow_rules: { policies: { p: permit(path({ suffix: "/yes" })) } },
          shadow_rules_stat_prefix: "other_",
        }),
      },
      { match: { prefix: "/" } },
    ],
  },
  { name: "log", filters: [rbacFilter({ rules: { action: "LOG", policies: { p: permit(path({ exact: "/p" })) } } })] },
];

const onPaths = (listener: string, ...paths: readonly string[]): readonly ParityCall[] =>
  paths.map((one) => ({ listener, path: one }));
const withHeaders = (
  listener: string,
  ...headers: readonly NonNullable<ParityCall["headers"]>[]
): readonly ParityCall[] => headers.map((one) => ({ listener, headers: one }));

const calls: readonly ParityCall[] = [
  ...onPaths("none", "/"),
  ...onPaths("empty", "/"),
  ...onPaths(
    "paths",
    "/exact",
    "/exact?q=1",
    "/exact/",
    "/Exact",
    "/pre/",
    "/pre/x",
    "/pre",
    "/pre/deep/x?y",
    "/a.html",
  ),
  ...onPaths(
    "paths",
    "/a.html?x",
    "/a?x=.html",
    "/any",
    "/ANY",
    "/lower",
    "/x/inner/y",
    "/re/12",
    "/re/12/x",
    "/%65xact",
  ),
  { listener: "headers", method: "PUT", path: "/put" },
  { listener: "headers", method: "GET", path: "/put" },
  { listener: "headers", method: "PUT", path: "/other" },
  ...["a.test", "A.Test", "a.test:80", "x.wild.test", "X.WILD.TEST", "wild.test", "b.test:9", "b.test"].map((host) => ({
    listener: "headers",
    host,
  })),
  ...withHeaders(
    "headers",
    { "x-present": "" },
    { "x-value": "one" },
    { "x-value": "One" },
    { "x-value": ["two", "three"] },
  ),
  ...withHeaders("headers", { "x-value": ["one", "two"] }, { "x-not": "no" }, { "x-not": "yes" }, { "x-empty": "" }),
  ...withHeaders("headers", { "x-not": ["no", "yes"] }, { "x-not": ["yes", "no"] }, { "x-not": ["no", "no"] }),
  ...withHeaders("headers", { "x-not": ["yes", "maybe"] }, { "x-default": ["a", "b"] }, { "x-default": ["b", "c"] }),
  ...withHeaders(
    "headers",
    { "x-default": ["b", "c", "a"] },
    { "x-default": "a" },
    { "x-other": ["a", "b"] },
    { "x-other": ["b", "b"] },
  ),
  ...onPaths("deny", "/", "/b", "/b/a", "/b/a/c", "/c", "/c/but", "/c/but/more"),
  ...onPaths("addresses", "/", "/direct", "/source", "/local", "/range"),
  ...withHeaders("addresses", { "x-forwarded-for": "10.1.2.3" }, { "x-forwarded-for": "10.2.2.3" }),
  ...withHeaders("addresses", { "x-forwarded-for": "2001:db8::1" }, { "x-forwarded-for": "10.2.0.1, 10.1.0.1" }),
  ...withHeaders("addresses", { "x-forwarded-for": "10.1.0.1, 10.2.0.1" }),
  ...onPaths("peers", "/", "/no-sni", "/one", "/two?three", "/three"),
  ...withHeaders("peers", { "x-plain": "yes" }, { "x-plain": "no" }),
  ...onPaths(
    "metadata",
    "/nested",
    "/flat",
    "/list",
    "/listless",
    "/number",
    "/numbers",
    "/present",
    "/object",
    "/null",
  ),
  ...onPaths("metadata", "/missing", "/other"),
  ...onPaths("shadow", "/", "/secret", "/route/off", "/route/own/yes", "/route/own/no", "/route/shadow/yes"),
  ...onPaths("shadow", "/route/shadow/no"),
  { listener: "shadow", method: "POST", path: "/secret" },
  ...onPaths("log", "/p", "/q"),
];

let pair: ParityPair;
let ours: readonly Seen[];
let envoys: readonly Seen[];

before(async () => {
  pair = await startParityPair(listeners, "envoy.filters.http.rbac");
  ({ ours, envoys } = await pair.run(calls));
});

after(() => pair.stop());

for (const [index, { listener, method = "GET", path: target = "/", host = "", headers = {} }] of calls.entries()) {
  test(`${listener}: ${method} ${host}${target} ${JSON.stringify(headers)}`, () => {
    assert.deepEqual(ours[index], envoys[index]);
  });
}

test("both let some calls through and refuse others", () => {
  assert.deepEqual(new Set(envoys.map(({ status }) => status)), new Set([200, 403]));
});

test("the same counters have the same values", async () => {
  const counters = await pair.counters(/\.rbac\./);
  assert.deepEqual(counters.ours, counters.envoys);
});
