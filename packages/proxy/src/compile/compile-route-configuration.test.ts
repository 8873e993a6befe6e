// Requests walked through compiled route tables: which virtual host, which route, which cluster, and what is done to the
// request and the response.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { toBinary } from "@bufbuild/protobuf";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import {
  type RequestProperties,
  accepted,
  fromConfiguration,
  problemsOf,
  requestHead,
  streamInfo,
} from "../testing/from-configuration.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { RouteTable } from "../route/route-table.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { buildRouteTable, compileEncodedRoutes, compileRouteConfiguration } from "./compile-route-configuration.ts";
import { runAtOnce } from "./in-slices.ts";
import { type Compiled, Place, Problems, compiled as asCompiled } from "../fields/problems.ts";
import { encodedSource } from "./route-source.ts";

const scope = detachedScope({ environment: { REGION: "north" } });

function encoded(json: object): Uint8Array {
  return toBinary(RouteConfigurationSchema, fromConfiguration(RouteConfigurationSchema, json));
}

/** As RDS brings it: compiled when it comes, and again for the first request. */
function table(json: object): RouteTable {
  const source = encodedSource(encoded(json));
  const problems = new Problems();
  const built = runAtOnce(buildRouteTable(source, scope, {}, Place.root, problems));
  const inline = accepted(compileRouteConfiguration(fromConfiguration(RouteConfigurationSchema, json), scope));
  assert.deepEqual(built.clusterNames, inline.clusterNames);
  return accepted(asCompiled(built, problems));
}

/** One virtual host for all hosts. */
function routes(list: readonly object[], host: object = {}, configuration: object = {}): object {
  return { name: "r", virtual_hosts: [{ name: "all", domains: ["*"], routes: list, ...host }], ...configuration };
}

/** `cluster`, `status location` of a redirect, `status body` of a direct response, or `none`. */
function outcome(compiled: RouteTable, properties: RequestProperties, random = 0): string {
  const request = requestHead(properties);
  const match = compiled.match(request, () => random);
  if (match === undefined) return "none";
  const { action } = match;
  switch (action.type) {
    case "forward":
      return action.clusterSlot.name;
    case "redirect":
      return `${action.status} ${action.location(request)}`;
    case "direct":
      return `${action.status} ${Buffer.from(action.body).toString()}`;
  }
}

const to = (cluster: string, match: object, extra: object = {}): object => ({ match, route: { cluster, ...extra } });

const domains = ["exact.com", "exact.com:8080", "*.wild.com", "*.deep.wild.com", "*-x.wild.com", "pre.*", "pre.fix.*"];
const hostTable = table({
  name: "hosts",
  virtual_hosts: [
    ...domains.map((domain) => ({ name: domain, domains: [domain], routes: [to(domain, { prefix: "/" })] })),
    { name: "rest", domains: ["*"], routes: [to("rest", { prefix: "/" })] },
  ],
});

for (const { authority, expected } of [
  { authority: "exact.com", expected: "exact.com" },
  { authority: "EXACT.com", expected: "exact.com" },
  { authority: "exact.com:8080", expected: "exact.com:8080" },
  { authority: "exact.com:9090", expected: "rest" },
  { authority: "a.wild.com", expected: "*.wild.com" },
  { authority: "a.deep.wild.com", expected: "*.deep.wild.com" },
  { authority: "b-x.wild.com", expected: "*-x.wild.com" },
  { authority: "-x.wild.com", expected: "*.wild.com" },
  { authority: ".wild.com", expected: "rest" },
  { authority: "wild.com", expected: "rest" },
  { authority: "pre.org", expected: "pre.*" },
  { authority: "pre.fix.org", expected: "pre.fix.*" },
  { authority: "pre.wild.com", expected: "*.wild.com" },
  { authority: "pre.", expected: "rest" },
  { authority: "", expected: "rest" },
]) {
  test(`virtual host of '${authority}' is ${expected}`, () => {
    assert.equal(outcome(hostTable, { authority }), expected);
  });
}

test("ignore_port_in_host_matching takes the port from the authority", () => {
  const compiled = table({
    name: "r",
    ignore_port_in_host_matching: true,
    virtual_hosts: [{ name: "a", domains: ["a.com"], routes: [to("a", { prefix: "/" })] }],
  });
  assert.equal(outcome(compiled, { authority: "a.com:8080" }), "a");
  assert.equal(outcome(compiled, { authority: "b.com:8080" }), "none");
});

const matchCases: readonly {
  readonly name: string;
  readonly match: object;
  readonly request: RequestProperties;
  readonly random?: number;
  readonly matches: boolean;
}[] = [
  { name: "prefix", match: { prefix: "/a" }, request: { path: "/abc?x" }, matches: true },
  { name: "other prefix", match: { prefix: "/a" }, request: { path: "/b/a" }, matches: false },
  { name: "prefix with case", match: { prefix: "/A" }, request: { path: "/abc" }, matches: false },
  {
    name: "prefix without case",
    match: { prefix: "/A", case_sensitive: false },
    request: { path: "/abc" },
    matches: true,
  },
  {
    name: "a prefix never reaches into the query",
    match: { prefix: "/a?x" },
    request: { path: "/a?x" },
    matches: false,
  },
  {
    name: "no prefix takes a path-less CONNECT",
    match: { prefix: "/" },
    request: { method: "CONNECT", path: "" },
    matches: false,
  },
  { name: "path", match: { path: "/a" }, request: { path: "/a" }, matches: true },
  { name: "path with query", match: { path: "/a" }, request: { path: "/a?b=c" }, matches: true },
  { name: "path with more", match: { path: "/a" }, request: { path: "/a/" }, matches: false },
  {
    name: "path without case",
    match: { path: "/Ab", case_sensitive: false },
    request: { path: "/aB?q" },
    matches: true,
  },
  {
    name: "separated prefix, exact",
    match: { path_separated_prefix: "/a/b" },
    request: { path: "/a/b" },
    matches: true,
  },
  {
    name: "separated prefix, below",
    match: { path_separated_prefix: "/a/b" },
    request: { path: "/a/b/c" },
    matches: true,
  },
  {
    name: "separated prefix, query",
    match: { path_separated_prefix: "/a/b" },
    request: { path: "/a/b?c" },
    matches: true,
  },
  {
    name: "separated prefix, longer word",
    match: { path_separated_prefix: "/a/b" },
    request: { path: "/a/bc" },
    matches: false,
  },
  { name: "regex", match: { safe_regex: { regex: "/v[0-9]+/.*" } }, request: { path: "/v12/x?y" }, matches: true },
  {
    name: "regex is about the whole path",
    match: { safe_regex: { regex: "/v[0-9]+" } },
    request: { path: "/v12/x" },
    matches: false,
  },
  {
    name: "regex does not see the query",
    match: { safe_regex: { regex: "/v1" } },
    request: { path: "/v1?x" },
    matches: true,
  },
  {
    name: "regex that is a prefix",
    match: { safe_regex: { regex: "/items/.*" } },
    request: { path: "/items/1" },
    matches: true,
  },
  {
    name: "regex of alternatives",
    match: { safe_regex: { regex: "(/a|/b)" } },
    request: { path: "/b" },
    matches: true,
  },
  {
    name: "regex of alternatives, neither",
    match: { safe_regex: { regex: "/a|/b" } },
    request: { path: "/ab" },
    matches: false,
  },
  { name: "CONNECT", match: { connect_matcher: {} }, request: { method: "CONNECT", path: "" }, matches: true },
  { name: "CONNECT only", match: { connect_matcher: {} }, request: {}, matches: false },
  ...headerCases(),
  ...queryCases(),
  {
    name: "fraction, within",
    match: { prefix: "/", runtime_fraction: { default_value: { numerator: 30 } } },
    request: {},
    random: 0.29,
    matches: true,
  },
  {
    name: "fraction, outside",
    match: { prefix: "/", runtime_fraction: { default_value: { numerator: 30 } } },
    request: {},
    random: 0.3,
    matches: false,
  },
  {
    name: "fraction of a million",
    match: { prefix: "/", runtime_fraction: { default_value: { numerator: 1, denominator: "MILLION" } } },
    request: {},
    random: 0.000_002,
    matches: false,
  },
];

function headerCases() {
  const one = (name: string, matcher: object, headers: Readonly<Record<string, string>>, matches: boolean) => ({
    name: `header, ${name}`,
    match: { prefix: "/", headers: [{ name: "X-A", ...matcher }] },
    request: { headers },
    matches,
  });
  const exact = { string_match: { exact: "v" } };
  return [
    one("exact", exact, { "x-a": "v" }, true),
    one("another value", exact, { "x-a": "w" }, false),
    one("missing", exact, {}, false),
    one("old exact", { exact_match: "v" }, { "x-a": "v" }, true),
    one("exact without case", { string_match: { exact: "V", ignore_case: true } }, { "x-a": "v" }, true),
    one("prefix", { string_match: { prefix: "ab" } }, { "x-a": "abc" }, true),
    one("suffix", { string_match: { suffix: "bc" } }, { "x-a": "abc" }, true),
    one("contains", { string_match: { contains: "b" } }, { "x-a": "abc" }, true),
    one("old contains", { contains_match: "d" }, { "x-a": "abc" }, false),
    one("regex", { string_match: { safe_regex: { regex: "a+b" } } }, { "x-a": "aab" }, true),
    one("regex of a part", { safe_regex_match: { regex: "a+" } }, { "x-a": "aab" }, false),
    one("present", { present_match: true }, { "x-a": "" }, true),
    one("absent wanted", { present_match: false }, {}, true),
    one("absent wanted, present", { present_match: false }, { "x-a": "v" }, false),
    one("no condition is presence", {}, { "x-a": "v" }, true),
    one("inverted", { ...exact, invert_match: true }, { "x-a": "w" }, true),
    one("inverted, equal", { ...exact, invert_match: true }, { "x-a": "v" }, false),
    one("inverted, missing", { ...exact, invert_match: true }, {}, false),
    one("inverted presence, missing", { present_match: true, invert_match: true }, {}, true),
    one("missing as empty", { string_match: { exact: "" }, treat_missing_header_as_empty: true }, {}, true),
    one("missing as empty, inverted", { ...exact, invert_match: true, treat_missing_header_as_empty: true }, {}, true),
    one("range", { range_match: { start: "-5", end: "5" } }, { "x-a": "4" }, true),
    one("end of range", { range_match: { start: "-5", end: "5" } }, { "x-a": "5" }, false),
    one("range of no number", { range_match: { start: "-5", end: "5" } }, { "x-a": "4x" }, false),
    {
      name: "header, method",
      match: { prefix: "/", headers: [{ name: ":method", string_match: { exact: "POST" } }] },
      request: { method: "POST" },
      matches: true,
    },
    {
      name: "header, authority",
      match: { prefix: "/", headers: [{ name: ":authority", string_match: { prefix: "api." } }] },
      request: { authority: "api.x" },
      matches: true,
    },
    {
      name: "two headers",
      match: {
        prefix: "/",
        headers: [
          { name: "a", present_match: true },
          { name: "b", present_match: true },
        ],
      },
      request: { headers: { a: "1" } },
      matches: false,
    },
  ];
}

function queryCases() {
  const one = (name: string, matcher: object, path: string, matches: boolean) => ({
    name: `query, ${name}`,
    match: { prefix: "/", query_parameters: [{ name: "q", ...matcher }] },
    request: { path },
    matches,
  });
  return [
    one("value", { string_match: { exact: "1" } }, "/?a=2&q=1", true),
    one("another value", { string_match: { exact: "1" } }, "/?q=2", false),
    one("the first of a name counts", { string_match: { exact: "1" } }, "/?q=2&q=1", false),
    one("present", { present_match: true }, "/?q", true),
    one("missing", { present_match: true }, "/?x", false),
    one("absence wanted", { present_match: false }, "/?x", true),
    one("not decoded", { string_match: { exact: "a b" } }, "/?q=a%20b", false),
  ];
}

for (const { name, match, request, random, matches } of matchCases) {
  test(`match: ${name} → ${matches ? "yes" : "no"}`, () => {
    assert.equal(outcome(table(routes([to("c", match)])), request, random), matches ? "c" : "none");
  });
}

test("the first route that matches decides", () => {
  const compiled = table(
    routes([to("one", { path: "/a" }), to("two", { prefix: "/a" }), to("three", { prefix: "/" })]),
  );
  assert.deepEqual(
    ["/a", "/ab", "/"].map((path) => outcome(compiled, { path })),
    ["one", "two", "three"],
  );
  assert.deepEqual([...compiled.clusterNames], ["one", "two", "three"]);
});

for (const { random, expected } of [
  { random: 0, expected: "a" },
  { random: 0.099, expected: "a" },
  { random: 0.1, expected: "b" },
  { random: 0.999_9, expected: "b" },
]) {
  test(`weights 10 and 90 at ${random} → ${expected}`, () => {
    const clusters = [
      { name: "a", weight: 10 },
      { name: "none", weight: 0 },
      { name: "b", weight: 90 },
    ];
    const compiled = table(routes([{ match: { prefix: "/" }, route: { weighted_clusters: { clusters } } }]));
    assert.equal(outcome(compiled, {}, random), expected);
  });
}

test("cluster_header names a cluster that exists; another leaves nothing behind", () => {
  scope.clusterSlot("named");
  const compiled = table(routes([{ match: { prefix: "/" }, route: { cluster_header: "x-cluster" } }]));
  assert.equal(outcome(compiled, { headers: { "x-cluster": "named" } }), "named");
  assert.equal(outcome(compiled, { headers: { "x-cluster": "of an attacker" } }), "");
  assert.equal(scope.knownClusterSlot("of an attacker"), undefined);
});

for (const { name, redirect, match, request, expected } of [
  {
    name: "https",
    redirect: { https_redirect: true },
    request: { authority: "a:80", path: "/x?y" },
    expected: "301 https://a/x?y",
  },
  {
    name: "https keeps another port",
    redirect: { https_redirect: true },
    request: { authority: "a:81" },
    expected: "301 https://a:81/",
  },
  {
    name: "port",
    redirect: { port_redirect: 8443, scheme_redirect: "https" },
    request: { authority: "a:80" },
    expected: "301 https://a:8443/",
  },
  {
    name: "IPv6",
    redirect: { port_redirect: 81 },
    request: { authority: "[::1]:80" },
    expected: "301 http://[::1]:81/",
  },
  {
    name: "host",
    redirect: { host_redirect: "b", response_code: "FOUND" },
    request: { authority: "a:80" },
    expected: "302 http://b/",
  },
  {
    name: "path",
    redirect: { path_redirect: "/n", response_code: "SEE_OTHER" },
    request: { path: "/x?y=1" },
    expected: "303 http://host/n?y=1",
  },
  {
    name: "path with a query of its own",
    redirect: { path_redirect: "/n?z=1" },
    request: { path: "/x?y=1" },
    expected: "301 http://host/n?z=1",
  },
  {
    name: "query stripped",
    redirect: { path_redirect: "/n", strip_query: true },
    request: { path: "/x?y=1" },
    expected: "301 http://host/n",
  },
  {
    name: "prefix",
    redirect: { prefix_rewrite: "/n", response_code: "TEMPORARY_REDIRECT" },
    match: { prefix: "/x" },
    request: { path: "/x/a?y" },
    expected: "307 http://host/n/a?y",
  },
  {
    name: "regex",
    redirect: {
      regex_rewrite: { pattern: { regex: "/(\\d+)" }, substitution: "/n/\\1" },
      response_code: "PERMANENT_REDIRECT",
    },
    request: { path: "/12?y" },
    expected: "308 http://host/n/12?y",
  },
] as const) {
  test(`redirect: ${name}`, () => {
    const compiled = table(routes([{ match: "match" in { match } && match ? match : { prefix: "/" }, redirect }]));
    assert.equal(outcome(compiled, request), expected);
  });
}

test("require_tls sends plain requests to https", () => {
  const compiled = table(routes([to("c", { prefix: "/" })], { require_tls: "ALL" }));
  assert.equal(outcome(compiled, { authority: "a:80", path: "/x" }), "301 https://a/x");
  assert.equal(outcome(compiled, { scheme: "https" }), "c");
});

test("a direct response has status and body", () => {
  const direct = { match: { prefix: "/" }, direct_response: { status: 418, body: { inline_string: "short" } } };
  assert.equal(outcome(table(routes([direct])), {}), "418 short");
});

interface RequestChange {
  readonly name: string;
  readonly route: object;
  readonly host?: object;
  readonly configuration?: object;
  readonly request: RequestProperties;
  readonly expected: Readonly<Record<string, string>>;
}

const added = (key: string, value: string, append_action?: string): object => ({
  header: { key, value },
  ...(append_action && { append_action }),
});

const changes: readonly RequestChange[] = [
  {
    name: "prefix rewrite keeps the query and remembers the path",
    route: to("c", { prefix: "/a/" }, { prefix_rewrite: "/b/" }),
    request: { path: "/a/x?y" },
    expected: { ":path": "/b/x?y", "x-envoy-original-path": "/a/x?y" },
  },
  {
    name: "rewrite of an exact path",
    route: to("c", { path: "/a" }, { prefix_rewrite: "/b" }),
    request: { path: "/a?y" },
    expected: { ":path": "/b?y", "x-envoy-original-path": "/a?y" },
  },
  {
    name: "regex rewrite replaces every match in the path alone",
    route: to("c", { prefix: "/" }, { regex_rewrite: { pattern: { regex: "/a(\\w)" }, substitution: "/\\1$" } }),
    request: { path: "/ax/ay?/az" },
    expected: { ":path": "/x$/y$?/az", "x-envoy-original-path": "/ax/ay?/az" },
  },
  {
    name: "host rewrite remembers the host",
    route: to("c", { prefix: "/" }, { host_rewrite_literal: "new", append_x_forwarded_host: true }),
    request: { authority: "old" },
    expected: { ":authority": "new", "x-envoy-original-host": "old", "x-forwarded-host": "old" },
  },
  {
    name: "host from a header",
    route: to("c", { prefix: "/" }, { host_rewrite_header: "x-new" }),
    request: { authority: "old", headers: { "x-new": "new" } },
    expected: { ":authority": "new", "x-new": "new", "x-envoy-original-host": "old" },
  },
  {
    name: "the least specific level has the last word",
    route: { ...to("c", { prefix: "/" }), request_headers_to_add: [added("x", "route", "OVERWRITE_IF_EXISTS_OR_ADD")] },
    host: { request_headers_to_add: [added("x", "host", "OVERWRITE_IF_EXISTS_OR_ADD")] },
    configuration: { request_headers_to_add: [added("x", "table", "OVERWRITE_IF_EXISTS_OR_ADD")] },
    request: {},
    expected: { x: "table" },
  },
  {
    name: "what a peer escaped cannot end the line that it is put in",
    route: { ...to("c", { prefix: "/" }), request_headers_to_add: [added("x", "%QUERY_PARAM(q)%")] },
    request: { path: "/?q=a%0d%0aevil:%201%c4%8a" },
    expected: { x: "a  evil: 1\xc4\x8a" },
  },
  {
    name: "other characters than ASCII go out as UTF-8",
    route: {
      ...to("c", { prefix: "/" }, { prefix_rewrite: "/Ċ" }),
      request_headers_to_add: [
        added("x", "é"),
        { header: { key: "y", raw_value: Buffer.from([0x8a]).toString("base64") } },
      ],
    },
    request: { path: "/" },
    expected: { ":path": "/\xc4\x8a", x: "\xc3\xa9", y: "\x8a", "x-envoy-original-path": "/" },
  },
  {
    name: "the most specific level, when told so",
    route: { ...to("c", { prefix: "/" }), request_headers_to_add: [added("x", "route", "OVERWRITE_IF_EXISTS_OR_ADD")] },
    host: { request_headers_to_add: [added("x", "host", "OVERWRITE_IF_EXISTS_OR_ADD")] },
    configuration: { most_specific_header_mutations_wins: true },
    request: {},
    expected: { x: "route" },
  },
  {
    name: "append actions",
    route: {
      ...to("c", { prefix: "/" }),
      request_headers_to_add: [
        added("a", "2"),
        added("b", "2", "ADD_IF_ABSENT"),
        added("c", "2", "ADD_IF_ABSENT"),
        added("d", "2", "OVERWRITE_IF_EXISTS"),
        added("e", "2", "OVERWRITE_IF_EXISTS"),
      ],
    },
    request: { headers: { a: "1", b: "1", e: "1" } },
    expected: { a: "1,2", b: "1", c: "2", e: "2" },
  },
  {
    name: "removal comes before addition",
    route: {
      ...to("c", { prefix: "/" }),
      request_headers_to_add: [added("a", "new")],
      request_headers_to_remove: ["A", "gone"],
    },
    request: { headers: { a: "old", gone: "1" } },
    expected: { a: "new" },
  },
  {
    name: "formats; an empty value adds nothing",
    route: {
      ...to("c", { prefix: "/" }),
      request_headers_to_add: [
        added("x", "%REQ(:method)% %ENVIRONMENT(REGION)% 100%%"),
        added("y", "%REQ(absent)%"),
        { header: { key: "z", value: "%REQ(absent)%" }, keep_empty_value: true },
      ],
    },
    request: { method: "PUT" },
    expected: { x: "PUT north 100%", z: "" },
  },
  {
    name: "changes see the path before its rewrite",
    route: {
      ...to("c", { prefix: "/a" }, { prefix_rewrite: "/b" }),
      request_headers_to_add: [added("x", "%REQ(:path)%")],
    },
    request: { path: "/a" },
    expected: { x: "/a", ":path": "/b", "x-envoy-original-path": "/a" },
  },
  {
    name: "headers of the chosen weighted cluster",
    route: {
      match: { prefix: "/" },
      route: {
        weighted_clusters: {
          clusters: [{ name: "c", weight: 1, request_headers_to_add: [added("x", "w")], host_rewrite_literal: "w" }],
        },
      },
    },
    request: {},
    expected: { x: "w", ":authority": "w", "x-envoy-original-host": "host" },
  },
];

for (const { name, route, host, configuration, request, expected } of changes) {
  test(`request: ${name}`, () => {
    const head = requestHead(request);
    const match = table(routes([route], host, configuration)).match(head, () => 0);
    assert.ok(match?.action.type === "forward");
    match.action.finalizeRequest(head, streamInfo(head));
    const seen: Record<string, string> = {};
    for (let index = 0; index < head.headers.entries.length; index += 2) {
      const key = head.headers.entries[index]!;
      seen[key] = head.headers.getJoined(key)!;
    }
    if (head.path !== "/" || expected[":path"] !== undefined) seen[":path"] = head.path;
    if (head.authority !== "host" || expected[":authority"] !== undefined) seen[":authority"] = head.authority;
    const before = request.path === undefined ? {} : { ":path": request.path };
    const authority = request.authority === undefined ? {} : { ":authority": request.authority };
    assert.deepEqual(seen, { ...before, ...authority, ...expected });
  });
}

test("response headers of all levels", () => {
  const route = { ...to("c", { prefix: "/" }), response_headers_to_add: [added("x", "%RESPONSE_CODE%-%REQ(a)%")] };
  const match = table(routes([route], { response_headers_to_remove: ["server"] })).match(requestHead(), () => 0);
  assert.ok(match?.action.type === "forward");
  assert.equal(match.action.responseIsUntouched, false);
  const response = { status: 200, headers: new HeaderMap(["server", "s"]), upgrade: undefined };
  const info = streamInfo(requestHead({ headers: { a: "1" } }));
  info.responseCode = 200;
  match.action.finalizeResponse(response, info);
  assert.deepEqual(response.headers.entries, ["x", "200-1"]);
});

test("time-outs, retries and attempt counts come from the nearest level", () => {
  const retry_policy = {
    retry_on: "5xx, connect-failure,nonsense",
    num_retries: 3,
    per_try_timeout: "2s",
    retriable_status_codes: [409],
    retry_host_predicate: [{ name: "envoy.retry_host_predicates.previous_hosts" }],
    host_selection_retry_max_attempts: "5",
    retry_back_off: { base_interval: "0.025s" },
    retriable_headers: [{ name: "x-again", present_match: true }],
  };
  const own = to("c", { path: "/own" }, { timeout: "0s", idle_timeout: "0.5s", retry_policy: { retry_on: "reset" } });
  const newer = to("c", { path: "/new" }, { timeout: "3s", max_stream_duration: { grpc_timeout_header_max: "3s" } });
  const host = { retry_policy, include_request_attempt_count: true };
  const compiled = table(routes([own, newer, to("c", { prefix: "/" })], host));
  const ofPath = (path: string) => {
    const action = compiled.match(requestHead({ path }), () => 0)?.action;
    assert.ok(action?.type === "forward");
    return action;
  };
  const inherited = ofPath("/");
  assert.equal(inherited.timeoutMs, 15_000);
  assert.equal(inherited.includeRequestAttemptCount, true);
  const { isRetriableResponse, isRetriableRequest, ...plain } = inherited.retryPolicy!;
  assert.deepEqual(plain, {
    retryOn: 1 | 16,
    numRetries: 3,
    perTryTimeoutMs: 2000,
    perTryIdleTimeoutMs: 0,
    retriableStatusCodes: [409],
    backOffBaseMs: 25,
    backOffMaxMs: 250,
    avoidPreviousHosts: true,
    hostSelectionMaxAttempts: 5,
  });
  assert.equal(isRetriableRequest, undefined);
  const again = { status: 200, headers: new HeaderMap(["x-again", "1"]), upgrade: undefined };
  assert.equal(isRetriableResponse?.(again), true);
  assert.deepEqual([ofPath("/own").timeoutMs, ofPath("/own").idleTimeoutMs], [0, 500]);
  assert.equal(ofPath("/own").retryPolicy?.retryOn, 4);
  assert.equal(ofPath("/new").timeoutMs, 0);
});

const refused: readonly { readonly name: string; readonly json: object; readonly expected: readonly string[] }[] = [
  {
    name: "a domain twice",
    json: {
      name: "r",
      virtual_hosts: [
        { name: "a", domains: ["x.com"] },
        { name: "b", domains: ["y.com", "X.com"] },
      ],
    },
    expected: [
      "virtual_hosts[1].domains[1]: Only unique values for domains are permitted. Duplicate entry of domain X.com in route r",
    ],
  },
  {
    name: "line ends in what becomes part of a head",
    json: routes([
      to("c", { prefix: "/a" }, { prefix_rewrite: "/x HTTP/1.1\r\nx: y", host_rewrite_literal: "a\nb" }),
      { match: { prefix: "/" }, redirect: { host_redirect: "a\r", path_redirect: "/\0" } },
    ]),
    expected: [
      "virtual_hosts[0].routes[0].route.prefix_rewrite: control characters are not allowed",
      "virtual_hosts[0].routes[0].route.host_rewrite_literal: control characters are not allowed",
      "virtual_hosts[0].routes[1].redirect.path_redirect: control characters are not allowed",
      "virtual_hosts[0].routes[1].redirect.host_redirect: control characters are not allowed",
    ],
  },
  {
    name: "two wildcards",
    json: {
      name: "r",
      virtual_hosts: [
        { name: "a", domains: ["*"] },
        { name: "b", domains: ["*"] },
      ],
    },
    expected: ["virtual_hosts[1].domains[0]: Only a single wildcard domain is permitted in route r"],
  },
  {
    name: "a virtual host's name twice",
    json: {
      name: "r",
      virtual_hosts: [
        { name: "a", domains: ["x"] },
        { name: "a", domains: ["y"] },
      ],
    },
    expected: [
      "virtual_hosts[1]: Only unique names for virtual hosts are permitted. Duplicate entry of virtual host a",
    ],
  },
  {
    name: "no domains",
    json: { name: "r", virtual_hosts: [{ name: "a" }] },
    expected: ["virtual_hosts[0].domains: value must contain at least 1 item(s)"],
  },
  {
    name: "a bad regex",
    json: routes([to("c", { safe_regex: { regex: "(?=a)" } })]),
    expected: [
      "virtual_hosts[0].routes[0].match.safe_regex.regex: invalid regex '(?=a)': error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
    ],
  },
  {
    name: "weights of nothing",
    json: routes([{ match: { prefix: "/" }, route: { weighted_clusters: { clusters: [{ name: "a", weight: 0 }] } } }]),
    expected: [
      "virtual_hosts[0].routes[0].route.weighted_clusters: Sum of weights in the weighted_cluster must be greater than 0.",
    ],
  },
  {
    name: "fields that would change behaviour",
    json: routes([to("c", { prefix: "/" }, { request_mirror_policies: [{ cluster: "m" }], hedge_policy: {} })]),
    expected: [
      "virtual_hosts[0].routes[0].route.request_mirror_policies: this field is not supported",
      "virtual_hosts[0].routes[0].route.hedge_policy: this field is not supported",
    ],
  },
  {
    name: "an unknown filter's configuration",
    json: routes([
      {
        ...to("c", { prefix: "/" }),
        typed_per_filter_config: {
          limit: { "@type": "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit" },
        },
      },
    ]),
    expected: [
      `virtual_hosts[0].routes[0].typed_per_filter_config["limit"]: Didn't find a registered implementation for type: 'envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit'`,
    ],
  },
  {
    name: "a protected header and an unknown operator",
    json: routes([
      {
        ...to("c", { prefix: "/" }),
        request_headers_to_add: [added(":path", "/x"), added("x", "%NO_SUCH%")],
        request_headers_to_remove: ["host"],
      },
    ]),
    expected: [
      "virtual_hosts[0].routes[0].request_headers_to_remove[0]: :-prefixed or host headers may not be removed",
      "virtual_hosts[0].routes[0].request_headers_to_add[0]: :-prefixed or host headers may not be modified",
      "virtual_hosts[0].routes[0].request_headers_to_add[1].header.value: Not supported field in StreamInfo: NO_SUCH",
    ],
  },
  {
    name: "a body that is too large",
    json: routes(
      [{ match: { prefix: "/" }, direct_response: { status: 200, body: { inline_string: "12345" } } }],
      {},
      { max_direct_response_body_size_bytes: 4 },
    ),
    expected: ["virtual_hosts[0].routes[0].direct_response.body: response body size is 5 bytes; maximum is 4"],
  },
  {
    name: "a missing cluster, when it is asked for",
    json: routes([to("nowhere", { prefix: "/" })], {}, { validate_clusters: true }),
    expected: ["virtual_hosts[0].routes[0].route.cluster: route: unknown cluster 'nowhere'"],
  },
];

for (const { name, json, expected } of refused) {
  test(`refused: ${name}`, async () => {
    const message = fromConfiguration(RouteConfigurationSchema, json);
    const options = { clusterExists: () => false };
    assert.deepEqual(problemsOf(compileRouteConfiguration(message, scope, options)), expected);
    assert.deepEqual(problemsOf(await compileEncodedRoutes(encoded(json), scope, options)), expected);
  });
}

test("compiling in slices gives the same table and lets other work run", async () => {
  const many = Array.from({ length: 5000 }, (_, index) => to(`c${index}`, { path: `/${index}` }));
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const result = accepted(await compileEncodedRoutes(encoded(routes(many)), scope));
  isDone = true;
  assert.equal(outcome(result, { path: "/4999" }), "c4999");
  assert.ok(turns > 1, "nothing else ran");
});

const twoHosts = (first: object[], second: object[], configuration: object = {}): Uint8Array =>
  encoded({
    name: "r",
    virtual_hosts: [
      { name: "first", domains: ["first"], routes: first },
      { name: "second", domains: ["second"], routes: second },
    ],
    ...configuration,
  });

const matchOf = (of: RouteTable, authority: string) => of.match(requestHead({ authority }), () => 0);

for (const { name, next, isKept } of [
  { name: "the same", next: twoHosts([to("a", { prefix: "/" })], [to("c", { prefix: "/" })]), isKept: true },
  { name: "another", next: twoHosts([to("b", { prefix: "/" })], [to("c", { prefix: "/" })]), isKept: false },
  {
    name: "the same in another table",
    next: twoHosts([to("a", { prefix: "/" })], [], { request_headers_to_remove: ["x-a"] }),
    isKept: false,
  },
]) {
  test(`a virtual host that comes again as ${name} is ${isKept ? "kept" : "compiled"}`, async () => {
    const before = twoHosts([to("a", { prefix: "/" })], [to("b", { prefix: "/" })]);
    const previous = accepted(await compileEncodedRoutes(before, scope));
    const match = matchOf(previous, "first");
    const after = accepted(await compileEncodedRoutes(next, scope, { previous }));
    assert.equal(matchOf(after, "first") === match, isKept);
    assert.equal(matchOf(previous, "first"), match, "the table before answers as it did");
    assert.deepEqual(after.clusterNames, accepted(await compileEncodedRoutes(next, scope)).clusterNames);
  });
}

test("a virtual host that is checked against clusters is checked when it comes again", async () => {
  const bytes = twoHosts([to("a", { prefix: "/" })], [], { validate_clusters: true });
  const previous = accepted(await compileEncodedRoutes(bytes, scope, { clusterExists: () => true }));
  const result = await compileEncodedRoutes(bytes, scope, { clusterExists: () => false, previous });
  assert.deepEqual(problemsOf(result), ["virtual_hosts[0].routes[0].route.cluster: route: unknown cluster 'a'"]);
});

test("a body from a file is what the file held when the route came", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tulle-route-"));
  t.after(() => rm(folder, { recursive: true }));
  const filename = join(folder, "body");
  await writeFile(filename, "then");
  const direct = { match: { prefix: "/" }, direct_response: { status: 200, body: { filename } } };
  const before = accepted(await compileEncodedRoutes(encoded(routes([direct])), scope));
  await rm(filename);
  assert.equal(outcome(before, {}), "200 then");
});

test("a file is read again with each change of its table", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tulle-route-"));
  t.after(() => rm(folder, { recursive: true }));
  const filename = join(folder, "body");
  const direct = { match: { prefix: "/" }, direct_response: { status: 200, body: { filename } } };
  await writeFile(filename, "then");
  const previous = accepted(await compileEncodedRoutes(twoHosts([direct], []), scope));
  await writeFile(filename, "now");
  const next = twoHosts([direct], [to("a", { prefix: "/" })]);
  assert.equal(
    outcome(accepted(await compileEncodedRoutes(next, scope, { previous })), { authority: "first" }),
    "200 now",
  );
});

test("a virtual host that is kept does not keep the response that it came with", async () => {
  const direct = { match: { prefix: "/" }, direct_response: { status: 200, body: { inline_bytes: "YWI=" } } };
  const settings = {
    typed_per_filter_config: {
      jwt: { "@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig", disabled: true },
    },
  };
  const compile = (second: object[], previous?: RouteTable): Promise<Compiled<RouteTable>> =>
    compileEncodedRoutes(new Uint8Array(twoHosts([direct], second, settings)), scope, { previous });
  const first = await (async () => {
    const bytes = new Uint8Array(twoHosts([direct], [], settings));
    const compiled = accepted(await compileEncodedRoutes(bytes, scope));
    matchOf(compiled, "first");
    return { compiled, bytes: new WeakRef(bytes.buffer) };
  })();
  const kept = accepted(await compile([to("a", { prefix: "/" })], first.compiled));
  Reflect.deleteProperty(first, "compiled");
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  await new Promise(setImmediate);
  collect();
  assert.equal(first.bytes.deref(), undefined);
  assert.equal(outcome(kept, { authority: "first" }), "200 ab");
});

for (const { name, bytes } of [
  { name: "in the table", bytes: twoHosts([], []).subarray(0, 5) },
  { name: "in a host", bytes: Buffer.from([0x12, 0x02, 0x1a, 0x05]) },
  { name: "in a route", bytes: Buffer.from([0x12, 0x04, 0x1a, 0x02, 0x0a, 0x05]) },
]) {
  test(`what is cut short ${name} is refused`, async () => {
    const problems = problemsOf(await compileEncodedRoutes(bytes, scope));
    assert.match(problems.at(-1) ?? "", /^cannot be decoded: /);
  });
}
