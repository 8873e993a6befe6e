// Signing out is not for other sites' pages nor for what a browser fetches in advance: the filter as the control plane
// sends it, on both proxies.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { startParityPair } from "../../packages/proxy/src/testing/parity-pair.ts";

const golden = path.join(import.meta.dirname, "../golden/browser-login/gateway-1.tulle-system.xds.yaml");

/** The first sign-in's is for all hosts, the other's for `admin.example.com` and below. */
function guards(): readonly object[] {
  const found: object[] = [];
  JSON.stringify(parse(readFileSync(golden, "utf8")), (_key, value: unknown) => {
    if (
      typeof value === "object" &&
      value !== null &&
      "name" in value &&
      String(value.name).startsWith("tulle.sign-out/")
    ) {
      const { disabled: _disabled, ...on } = value as { readonly disabled?: boolean };
      if (!found.some((each) => JSON.stringify(each) === JSON.stringify(on))) found.push(on);
    }
    return value;
  });
  return found;
}

const rows: readonly {
  readonly path: string;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
}[] = [
  { path: "/sign-out", status: 200 },
  { path: "/sign-out", headers: { "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate" }, status: 200 },
  { path: "/sign-out", headers: { "sec-fetch-site": "none" }, status: 200 },
  { path: "/sign-out", headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, status: 403 },
  { path: "/sign-out?a=b", headers: { "sec-fetch-site": "cross-site" }, status: 403 },
  { path: "/account", headers: { "sec-fetch-site": "cross-site" }, status: 200 },
  { path: "/sign-out", headers: { "sec-purpose": "prefetch" }, status: 403 },
  { path: "/sign-out", headers: { "sec-purpose": "prefetch;prerender" }, status: 403 },
  { path: "/sign-out", headers: { purpose: "Prefetch" }, status: 403 },
  { path: "/sign-out", headers: { "x-moz": "prefetch" }, status: 403 },
  { path: "/sign-out", headers: { "x-purpose": "preview" }, status: 403 },
  { path: "/account", headers: { "sec-purpose": "prefetch" }, status: 200 },
  { path: "/logout", host: "admin.example.com:8080", headers: { "sec-fetch-site": "cross-site" }, status: 403 },
  { path: "/logout", host: "WWW.admin.example.com", headers: { "sec-purpose": "prefetch" }, status: 403 },
  { path: "/logout", host: "example.com", headers: { "sec-fetch-site": "cross-site" }, status: 200 },
];

test("sign-out is refused to other sites' navigations and to prefetches", async (t) => {
  const pair = await startParityPair([{ name: "gateway", filters: guards() }], "none");
  t.after(() => pair.stop());
  const calls = rows.map(({ path: at, host = "shop.example", headers = {} }) => ({
    listener: "gateway",
    path: at,
    host,
    headers,
  }));
  const { ours, envoys } = await pair.run(calls);
  const expected = rows.map(({ status }) => status);
  assert.deepEqual(
    envoys.map(({ status }) => status),
    expected,
  );
  assert.deepEqual(
    ours.map(({ status }) => status),
    expected,
  );
});
