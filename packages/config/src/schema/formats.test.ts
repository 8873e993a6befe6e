/** String formats and durations: what they take and what they refuse. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDuration } from "./duration.ts";
import * as formats from "./formats.ts";
import * as labelFormats from "./label-formats.ts";
import type { Format } from "./formats.ts";

const cases: readonly { readonly format: Format; readonly good: readonly string[]; readonly bad: readonly string[] }[] =
  [
    { format: formats.dnsLabel, good: ["a", "a-1", "1"], bad: ["", "A", "a.b", "-a", "a-", "a".repeat(64), "a\n"] },
    { format: formats.dnsSubdomain, good: ["a.b-c.d", "a"], bad: ["", "a..b", ".a", "a_b", "a".repeat(254)] },
    { format: formats.namespaceName, good: ["", "shop"], bad: ["a.b"] },
    {
      format: formats.hostName,
      good: ["a", "A.b", "a.b."],
      bad: ["", "*", "*.a", "a..b", "a/b", "-a", "a b", "a_b.c", "10.0.0.1", "1"],
    },
    {
      format: formats.wildcardHost,
      good: ["*", "*.a.b", "a.b", "10.0.0.1", "::1", "*a.b", "*-a.b", "1"],
      bad: ["", "a.*", "*.*", "a/b", "http://a", "a_b.c", "300.0.0.1", "**", "*-"],
    },
    {
      format: formats.gatewayHost,
      good: ["*", "*/a.b", "./a.b", "shop/*", "a.b", "*.b", "10.0.0.1"],
      bad: ["/a.b", "a b/a.b", "a/b/c", "shop/", "~/a.b", "a", "shop/a", "*-a.b", "a_b.c"],
    },
    {
      format: formats.gatewayReference,
      good: ["mesh", "a", "shop/a", "A", "a.shop.svc.cluster.local"],
      bad: ["", "/a", "a/", "a/b/c", "./a", "a_b", "shop/a.b"],
    },
    {
      format: formats.duration,
      good: ["1ms", "2s", "1.5h", "1m30s", "100us900us", ".5s", "0.007s", "1.1s"],
      bad: ["", "0s", "0", "2", "-1s", "1us", "1.5ms", "2 s", "s", "1d", "999999999h", "1.2.3s"],
    },
    { format: formats.durationOrZero, good: ["0s", "0", "0ms", "1s"], bad: ["1us", "x"] },
    {
      format: formats.regex,
      good: ["a.*", "[a-z]+", "(?i)x"],
      bad: ["", "*", "(", "(?=a)", "(a)\\1", "a".repeat(1025)],
    },
    {
      format: formats.retryOn,
      good: ["5xx", "5xx,reset, connect-failure", "503", "", "gateway-error,"],
      bad: ["5XX", "600", "99", "sometimes"],
    },
    { format: labelFormats.labelValue, good: ["", "v1", "A_b.c-d"], bad: ["-a", "a b", "a/b", "a".repeat(64)] },
    {
      format: labelFormats.labelKey,
      good: ["app", "app.kubernetes.io/name", "A_b"],
      bad: ["", "/a", "a/", "A.b/c d", "a/b/c", "__proto__"],
    },
    {
      format: formats.headerName,
      good: ["x-a", ":authority", "X_Y"],
      bad: ["", "a b", "a:b", "é", "@request.auth.claims.x"],
    },
    {
      format: formats.headerMatchName,
      good: ["x-a", "@request.auth.claims.x", "@request.auth.claims[x]"],
      bad: [
        "@x",
        "@request.auth.claims",
        "@request.auth.claims.",
        "@request.auth.claims..a",
        "@request.auth.claims[a]b",
      ],
    },
    { format: formats.regexOrAny, good: ["*", "a"], bad: ["", "("] },
    { format: formats.nonEmpty, good: ["a"], bad: [""] },
  ];

for (const { format, good, bad } of cases) {
  test(`format ${format.name}`, () => {
    for (const value of good) assert.equal(format.check(value), undefined, JSON.stringify(value));
    for (const value of bad) assert.notEqual(format.check(value), undefined, JSON.stringify(value));
  });
}

test("durations in milliseconds", () => {
  const texts: Readonly<Record<string, number | undefined>> = {
    "2s": 2000,
    "1m30s": 90_000,
    "1.5h": 5_400_000,
    "250ms": 250,
    "500us": 0.5,
    "5µs": 0.005,
    "5μs": 0.005,
    "1h0.5s": 3_600_500,
    "0": 0,
    "0s": 0,
    "2": undefined,
    "": undefined,
    "1 s": undefined,
    "+1s": undefined,
  };
  for (const [text, expected] of Object.entries(texts)) assert.equal(parseDuration(text), expected, text);
});

test("every name that is taken for a claim leads to one, whatever stands in it", () => {
  for (const [name, claim] of [
    ["@request.auth.claims.a.b", ["a", "b"]],
    ["@request.auth.claims[a.b][c]", ["a.b", "c"]],
    ["@request.auth.claims.a[b]", ["a[b]"]],
    ["@request.auth.claims.a\nb", ["a\nb"]],
    ["@request.auth.claims[a\u2028b]", ["a\u2028b"]],
  ] as const) {
    assert.equal(formats.headerMatchName.check(name), undefined);
    assert.deepEqual(formats.routedClaim(name), claim);
  }
});
