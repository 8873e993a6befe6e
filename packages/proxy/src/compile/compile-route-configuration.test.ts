// Requests walked through compiled route tables: which virtual host, which route, which cluster, and the answers that a
// route gives itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RequestProperties } from "../testing/from-configuration.ts";
import { scope, table, routes, outcome, to } from "../testing/route-tables.ts";

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
