// Calls walked through what the control plane makes and Tulle's proxy compiles: the table says where each one has to
// end.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { goldenCaseNames, storedFiles } from "../golden/golden-cases.ts";
import { type Call, type Outcome, SimulatedProxy } from "./simulated-proxy.ts";

/** What Envoys alone are told: the access log service, for one. */
const forEnvoys = new Set(["telemetry"]);

describe("golden files compile without a word", async () => {
  for (const name of (await goldenCaseNames()).filter((each) => !forEnvoys.has(each))) {
    for (const file of (await storedFiles(name)).keys()) {
      if (!file.endsWith(".xds.yaml")) continue;
      test(`${name}/${file}`, async () => {
        await SimulatedProxy.load(name, file);
      });
    }
  }
});

interface Row extends Call {
  readonly name: string;
  readonly expected: Partial<Extract<Outcome, { readonly cluster: string }>> & { readonly status?: number };
}

interface Group {
  readonly golden: string;
  readonly proxy: string;
  readonly rows: readonly Row[];
}

const web = "webapp-6c9d8f5b7-qm8zt.shop.xds.yaml";
const shopGateway = "tulle-ingressgateway-7f9c4d6b8-h5v2n.tulle-system.xds.yaml";
const outbound = "127.200.1.3:15007";
const catalog = "outbound|80||catalog.shop.svc.cluster.local";
const v1 = "outbound|80|version-v1|catalog.shop.svc.cluster.local";
const v2 = "outbound|80|version-v2|catalog.shop.svc.cluster.local";
const atV1 = "127.200.1.1:3000";
const atV2 = "127.200.1.2:3000";
const notFound = { status: 404 };

const atPublic = { to: "127.200.1.9:80", host: "shop.example.com" };

type Asked = string | (Partial<Call> & { readonly path?: string });

/** Calls that a condition of the VirtualService `catalog` sends to v2. The last entry without a path holds for all. */
function matched(...asked: readonly Asked[]): readonly Row[] {
  return toSubset("v2", asked);
}

/** Calls that no condition takes. */
function unmatched(...asked: readonly Asked[]): readonly Row[] {
  return toSubset("v1", asked);
}

function toSubset(subset: string, asked: readonly Asked[]): readonly Row[] {
  const calls = asked.map((each) => (typeof each === "string" ? { path: each } : each));
  const shared = calls.find((call) => call.path === undefined) ?? {};
  return calls
    .filter((call) => call.path !== undefined)
    .map((call) => {
      const { to = outbound, host = "catalog", ...rest } = { ...shared, ...call };
      const port = host.endsWith(":8080") || to.endsWith(":8080") ? 8080 : 80;
      const name = `${rest.path} ${JSON.stringify(rest.headers ?? {})} at ${to} for ${host}: ${subset}`;
      return {
        name,
        to,
        host,
        ...rest,
        expected: { cluster: `outbound|${port}|${subset}|catalog.shop.svc.cluster.local` },
      };
    });
}

/** Where a roll-out sends a request. */
function toVersion(
  host: string,
  path: string,
  name: string,
  headers: Readonly<Record<string, string>> = {},
  random = 0.5,
): readonly Row[] {
  const [service, port = "80"] = host.split(":");
  const cluster = `outbound|${port}|${name}|${service}.shop.svc.cluster.local`;
  const row = { to: outbound, host, path, headers, random, expected: { cluster } };
  return [{ ...row, name: `${host}${path} ${JSON.stringify(headers)} ${random}: ${name || "no version"}` }];
}

/** Requests on both sides of the bounds between two versions. */
function shares(
  host: string,
  path: string,
  stable: string,
  canary: string,
  upToStable: number,
  upToCanary = 1,
): readonly Row[] {
  const little = 0.001;
  return [0, upToStable - little]
    .flatMap((random) => toVersion(host, path, stable, {}, random))
    .concat([upToStable + little, upToCanary - little].flatMap((random) => toVersion(host, path, canary, {}, random)));
}

const groups: readonly Group[] = [
  {
    golden: "shop",
    proxy: web,
    rows: [
      {
        name: "rule 1: both versions, Istio's default retries, no time limit",
        to: outbound,
        host: "catalog",
        expected: {
          virtualHost: "catalog.shop.svc.cluster.local:80",
          cluster: catalog,
          endpoints: [atV1, atV2],
          retries: 2,
          timeoutMs: 0,
          peerMetadata: "who-is-calling",
        },
      },
      { name: "with its port", to: outbound, host: "catalog:80", expected: { cluster: catalog } },
      { name: "in capitals", to: outbound, host: "CATALOG", expected: { cluster: catalog } },
      { name: "with its namespace", to: outbound, host: "catalog.shop", expected: { cluster: catalog } },
      { name: "with svc", to: outbound, host: "catalog.shop.svc:80", expected: { cluster: catalog } },
      { name: "in full", to: outbound, host: "catalog.shop.svc.cluster.local", expected: { cluster: catalog } },
      {
        name: "a forged peer is replaced",
        to: outbound,
        host: "catalog",
        headers: { "x-envoy-peer-metadata": "forged" },
        expected: { peerMetadata: "who-is-calling" },
      },
      {
        name: "another port of a Service's own",
        to: outbound,
        host: "productpage:9080",
        expected: { cluster: "outbound|9080||productpage.shop.svc.cluster.local", endpoints: [] },
      },
      {
        name: "another namespace needs its name",
        to: outbound,
        host: "tulle-ingressgateway.tulle-system",
        expected: { cluster: "outbound|80||tulle-ingressgateway.tulle-system.svc.cluster.local" },
      },
      {
        name: "another namespace without its name is outside",
        to: outbound,
        host: "tulle-ingressgateway",
        expected: { virtualHost: "allow_any", cluster: "PassthroughCluster", retries: undefined },
      },
      { name: "a port that the Service has not", to: outbound, host: "catalog:8080", expected: notFound },
      { name: "a Service that is not on port 80", to: outbound, host: "productpage", expected: notFound },
      {
        name: "an unknown host leaves the mesh, and is told nothing of the caller",
        to: outbound,
        host: "example.com:8443",
        headers: { "x-envoy-peer-metadata": "forged" },
        expected: { virtualHost: "allow_any", cluster: "PassthroughCluster", peerMetadata: undefined },
      },
      {
        name: "CONNECT to an unknown host tunnels",
        to: outbound,
        method: "CONNECT",
        host: "example.com:443",
        expected: { cluster: "PassthroughCluster" },
      },
      {
        name: "CONNECT to a host of the mesh",
        to: outbound,
        method: "CONNECT",
        host: "catalog:80",
        expected: notFound,
      },
      { name: "CONNECT for https to it", to: outbound, method: "CONNECT", host: "catalog:443", expected: notFound },
      {
        name: "inbound: whatever the host, the application, with nothing of the peer",
        to: "127.200.1.3:8080",
        host: "anything",
        headers: { "x-envoy-peer-metadata": "peer" },
        expected: {
          virtualHost: "inbound|http|80",
          cluster: "inbound|8080||",
          retries: 2,
          timeoutMs: 0,
          peerMetadata: undefined,
        },
      },
    ],
  },
  {
    golden: "shop",
    proxy: shopGateway,
    rows: [
      {
        name: "an exact path of another VirtualService on the same host",
        to: "127.200.1.9:8080",
        host: "any.example",
        path: "/productpage",
        expected: { cluster: "outbound|9080||productpage.shop.svc.cluster.local" },
      },
      {
        name: "a prefix",
        to: "127.200.1.9:8080",
        host: "any.example",
        path: "/static/style.css",
        expected: { cluster: "outbound|9080||productpage.shop.svc.cluster.local" },
      },
      {
        name: "an exact path goes no deeper",
        to: "127.200.1.9:8080",
        host: "any.example",
        path: "/login/other",
        expected: { cluster: "outbound|80||webapp.shop.svc.cluster.local", peerMetadata: "who-is-calling" },
      },
      {
        name: "a query is no part of an exact path",
        to: "127.200.1.9:8080",
        host: "any.example",
        path: "/login?next=/",
        expected: { cluster: "outbound|9080||productpage.shop.svc.cluster.local" },
      },
    ],
  },
  {
    golden: "rule-2-one-version",
    proxy: web,
    rows: [{ name: "rule 2", to: outbound, host: "catalog", expected: { cluster: v1, endpoints: [atV1] } }],
  },
  {
    golden: "rule-3-dark-launch",
    proxy: web,
    rows: [
      {
        name: "rule 3: with the header",
        to: outbound,
        host: "catalog",
        headers: { "x-dark-launch": "v2" },
        expected: { cluster: v2, endpoints: [atV2] },
      },
      { name: "rule 3: without it", to: outbound, host: "catalog", expected: { cluster: v1, endpoints: [atV1] } },
      {
        name: "rule 3: with another value",
        to: outbound,
        host: "catalog",
        headers: { "x-dark-launch": "v22" },
        expected: { cluster: v1 },
      },
    ],
  },
  {
    golden: "rule-4-retries",
    proxy: web,
    rows: [
      {
        name: "rule 4",
        to: outbound,
        host: "catalog",
        expected: { cluster: catalog, retries: 3, perTryTimeoutMs: 2000, endpoints: [atV1, atV2] },
      },
    ],
  },
  {
    golden: "routing",
    proxy: web,
    rows: [
      {
        name: "an exact path, with its time limits",
        to: outbound,
        host: "catalog",
        path: "/exact",
        expected: { cluster: v2, timeoutMs: 1500, retries: 1, perTryTimeoutMs: 250 },
      },
      { name: "a longer path", to: outbound, host: "catalog", path: "/exact/", expected: { cluster: catalog } },
      {
        name: "prefix and method",
        to: outbound,
        method: "POST",
        host: "catalog",
        path: "/prefix/a",
        expected: { cluster: v2 },
      },
      {
        name: "prefix, another method",
        to: outbound,
        host: "catalog",
        path: "/prefix/a",
        expected: { cluster: catalog },
      },
      {
        name: "regular expression and headers",
        to: outbound,
        host: "catalog.shop",
        path: "/items/17",
        headers: { "x-present": "", "x-prefix": "abcd", "x-regex": "bbb" },
        expected: { cluster: v2 },
      },
      {
        name: "an expression matches the whole path",
        to: outbound,
        host: "catalog",
        path: "/items/17/more",
        headers: { "x-present": "", "x-prefix": "abcd", "x-regex": "bbb" },
        expected: { cluster: catalog },
      },
      {
        name: "one header does not match",
        to: outbound,
        host: "catalog",
        path: "/items/17",
        headers: { "x-present": "", "x-prefix": "abcd", "x-regex": "abc" },
        expected: { cluster: catalog },
      },
      {
        name: "one header is missing",
        to: outbound,
        host: "catalog",
        path: "/items/17",
        headers: { "x-prefix": "abcd", "x-regex": "aaa" },
        expected: { cluster: catalog },
      },
      {
        name: "weights: the first 90",
        to: outbound,
        host: "catalog",
        path: "/weights",
        random: 0.89,
        expected: { cluster: v1 },
      },
      {
        name: "weights: the last 10",
        to: outbound,
        host: "catalog",
        path: "/weights",
        random: 0.91,
        expected: { cluster: v2 },
      },
      {
        name: "a weight of 0",
        to: outbound,
        host: "catalog",
        path: "/one-weight",
        random: 0.99,
        expected: { cluster: v1 },
      },
      {
        name: "no retries, and a Service that is not there",
        to: outbound,
        host: "catalog",
        path: "/no-retries",
        expected: { cluster: "outbound|80||nowhere.shop.svc.cluster.local", retries: undefined },
      },
      {
        name: "an action that is not carried yet",
        to: outbound,
        host: "catalog",
        path: "/not-yet",
        expected: { status: 501 },
      },
      {
        name: "a condition on the query",
        to: outbound,
        host: "catalog",
        path: "/narrower?c=d&a=b",
        expected: { cluster: v2 },
      },
      {
        name: "a condition on the query that is not met",
        to: outbound,
        host: "catalog",
        path: "/narrower?a=bb",
        expected: { cluster: catalog },
      },
      { name: "a host that no Service has", to: outbound, host: "api.example.com", expected: { cluster: v1 } },
      { name: "a wildcard host", to: outbound, host: "a.wild.example.com:80", expected: { cluster: v1 } },
      {
        name: "the earlier VirtualService has the host",
        to: outbound,
        host: "catalog",
        path: "/never-reached",
        expected: { cluster: catalog },
      },
    ],
  },
  {
    golden: "ports",
    proxy: web,
    rows: [
      {
        name: "a destination without a port takes that of the virtual host",
        to: outbound,
        host: "webapp:8081",
        expected: { cluster: "outbound|8081||webapp.shop.svc.cluster.local" },
      },
      {
        name: "a destination with a port",
        to: outbound,
        host: "webapp:7000",
        path: "/rpc",
        expected: { cluster: "outbound|50051||webapp.shop.svc.cluster.local" },
      },
      {
        name: "by address",
        to: outbound,
        host: "10.96.0.10",
        expected: { cluster: "outbound|80||webapp.shop.svc.cluster.local" },
      },
      { name: "a port that is not HTTP", to: outbound, host: "webapp:5432", expected: notFound },
      {
        name: "a pod behind two Services",
        to: "127.200.1.3:8080",
        host: "webapp-canary:8080",
        expected: { virtualHost: "inbound|http|80", cluster: "inbound|8080||" },
      },
      {
        name: "a target port of another number",
        to: "127.200.1.3:9081",
        host: "webapp:8081",
        expected: { virtualHost: "inbound|http|8081", cluster: "inbound|9081||" },
      },
    ],
  },
  {
    golden: "gateways",
    proxy: "gateway-1.tulle-system.xds.yaml",
    rows: [
      {
        name: "catch-all routes come last, whatever was first seen",
        to: "127.200.1.9:8080",
        host: "shop.example.com",
        path: "/items/1",
        expected: { virtualHost: "shop.example.com:80", cluster: v1 },
      },
      {
        name: "the rest of that host",
        to: "127.200.1.9:8080",
        host: "shop.example.com",
        expected: { cluster: catalog },
      },
      {
        name: "a port in the host",
        to: "127.200.1.9:8080",
        host: "shop.example.com:8000",
        expected: { cluster: catalog },
      },
      {
        name: "another host of the wildcard",
        to: "127.200.1.9:9000",
        host: "other.example.net",
        path: "/items/1",
        expected: { virtualHost: "*.example.net:9000", cluster: v1 },
      },
      { name: "a path without a route", to: "127.200.1.9:9000", host: "other.example.net", expected: notFound },
      {
        name: "a host without a route",
        to: "127.200.1.9:8080",
        host: "example.org",
        path: "/items/1",
        expected: notFound,
      },
      {
        name: "a host that its namespace may have",
        to: "127.200.1.9:8080",
        host: "blog.example.com",
        expected: { cluster: "outbound|8000||blog.blog.svc.cluster.local" },
      },
      {
        name: "a second port of the same Gateway",
        to: "127.200.1.9:9000",
        host: "blog.example.com",
        expected: { virtualHost: "blog.example.com:9000", cluster: "outbound|8000||blog.blog.svc.cluster.local" },
      },
    ],
  },
  {
    golden: "odd-values",
    proxy: "gateway-1.tulle-system.xds.yaml",
    rows: [
      {
        name: "a name below localhost",
        to: "127.200.1.9:18443",
        host: "odd.localhost:8080",
        expected: { virtualHost: "odd.localhost:18443" },
      },
      {
        name: "a wildcard in capitals",
        to: "127.200.1.9:18443",
        host: "a.example.com",
        expected: { virtualHost: "*.example.com:18443" },
      },
      {
        name: "a name with a trailing dot",
        to: "127.200.1.9:18443",
        host: "www.example.com",
        expected: { virtualHost: "www.example.com:18443" },
      },
      {
        name: "an IPv6 address",
        to: "127.200.1.9:18443",
        host: "[::1]:8080",
        expected: { virtualHost: "[::1]:18443" },
      },
    ],
  },
  {
    golden: "clients",
    proxy: "web-1.shop.xds.yaml",
    rows: [
      {
        name: "a VirtualService that another namespace keeps for itself, and one for nobody",
        to: outbound,
        host: "catalog",
        expected: { cluster: "outbound|80|v1|catalog.shop.svc.cluster.local" },
      },
      ...matched("/labels", "/mesh", "/both", "/case", "/CASE/a", "/Same", "/query?a=b&c=", "/without"),
      ...unmatched("/port", "/public", "/scheme", "/same", "/query?a=b", "/query?a=bb&c", "/query?c&A=b", "/query"),
      ...matched({ path: "/without", headers: { "x-b": "c" } }, { path: "/port", host: "catalog:8080" }),
      ...unmatched(
        { path: "/without", headers: { "x-any": "" } },
        { path: "/without", headers: { "x-star": "a" } },
        { path: "/without", headers: { "x-b": "b" } },
      ),
      {
        name: "no route for this client: the Service as it is",
        to: outbound,
        host: "orders",
        expected: { cluster: "outbound|80||orders.shop.svc.cluster.local" },
      },
      {
        name: "a host outside with a route for this client",
        to: outbound,
        host: "api.example.com",
        expected: { cluster: "outbound|80|v2|catalog.shop.svc.cluster.local" },
      },
      {
        name: "a Service for this namespace",
        to: outbound,
        host: "inner",
        expected: { cluster: "outbound|80||inner.shop.svc.cluster.local" },
      },
    ],
  },
  {
    golden: "clients",
    proxy: "other-1.shop.xds.yaml",
    rows: [
      ...matched("/mesh", "/case", { to: "127.200.1.4:15007" }),
      ...unmatched("/labels", "/both", "/public", { to: "127.200.1.4:15007" }),
      {
        name: "a host outside with routes for others alone",
        to: "127.200.1.4:15007",
        host: "api.example.com",
        expected: { cluster: "PassthroughCluster" },
      },
    ],
  },
  {
    golden: "clients",
    proxy: "reader-1.blog.xds.yaml",
    rows: [
      {
        name: "the namespace's own VirtualService",
        to: "127.200.1.5:15007",
        host: "catalog.shop",
        expected: { cluster: "outbound|80|v2|catalog.shop.svc.cluster.local" },
      },
      {
        name: "a route for this namespace",
        to: "127.200.1.5:15007",
        host: "orders.shop",
        expected: { cluster: "outbound|80|v2|catalog.shop.svc.cluster.local" },
      },
      {
        name: "a Service of another namespace that keeps it for itself",
        to: "127.200.1.5:15007",
        host: "inner.shop",
        expected: { cluster: "PassthroughCluster" },
      },
    ],
  },
  {
    golden: "clients",
    proxy: "gateway-1.tulle-system.xds.yaml",
    rows: [
      ...matched("/public", "/case", atPublic),
      // Labels of a client are those of the gateway.
      ...unmatched("/mesh", "/labels", "/both", "/port", atPublic),
      ...unmatched("/public", "/mesh", { ...atPublic, to: "127.200.1.9:8080" }),
      ...matched("/port", { ...atPublic, to: "127.200.1.9:8080" }),
    ],
  },
  {
    golden: "rollouts",
    proxy: web,
    rows: [
      ...shares("catalog", "/", "version-v1", "version-v2", 0.8),
      ...shares("catalog", "/large", "version-v1", "version-v2", 0.4, 0.5),
      ...shares("catalog", "/several", "version-v1", "version-v2", 0.4, 0.5),
      ...shares("orders", "/", "orders-stable", "orders-canary", 0.7),
      ...toVersion("catalog", "/", "version-v2", { "x-preview": "yes" }),
      ...toVersion("catalog", "/several", "version-v3", {}, 0.6),
      // Whatever the header, the user's own condition on it stands; and what names another version alone is left alone.
      ...toVersion("catalog", "/preview", "version-v1", { "x-preview": "other" }),
      ...toVersion("catalog", "/third", "version-v3", { "x-preview": "yes" }),
      ...toVersion("catalog", "/", "version-v2", { "x-dark-launch": "v2" }),
      ...toVersion("stock", "/", "stock-canary"),
      ...toVersion("stock:9090", "/", "stock-canary"),
      ...toVersion("prices", "/staged", "prices-stable"),
      ...toVersion("prices", "/", ""),
      ...toVersion("gone", "/", "version-v1", {}, 0.99),
    ],
  },
  {
    golden: "service-entries",
    proxy: "edge-1.tulle-system.xds.yaml",
    rows: [
      ...[":80", ""].map((port) => ({
        name: `a host by its own name, at a port of its entry: ${port}`,
        to: "127.1.2.4:80",
        host: `a.dynamic.example.com${port}`,
        expected: { cluster: "outbound|80||*.dynamic.example.com" },
      })),
      ...[":2222", ":443", ":5432", ":8080", ":"].map((port) => ({
        name: `at another port: ${port}`,
        to: "127.1.2.4:80",
        host: `a.dynamic.example.com${port}`,
        expected: { status: 404 },
      })),
    ],
  },
  {
    golden: "empty-mesh",
    proxy: web,
    rows: [
      { name: "everything is outside", to: outbound, host: "catalog", expected: { cluster: "PassthroughCluster" } },
    ],
  },
];

for (const { golden, proxy, rows } of groups) {
  describe(`${golden}/${proxy}`, () => {
    let simulated: SimulatedProxy;
    before(async () => {
      simulated = await SimulatedProxy.load(golden, proxy);
    });
    for (const { name, expected, ...call } of rows) {
      test(name, () => {
        const outcome: Readonly<Record<string, unknown>> = { ...simulated.call(call) };
        const seen = Object.fromEntries(Object.keys(expected).map((field) => [field, outcome[field]]));
        assert.deepEqual(seen, expected, JSON.stringify(outcome));
      });
    }
  });
}
