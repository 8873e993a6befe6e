// What the tables of `proxy-config` say of a dump, and how pods and levels are named.
import assert from "node:assert/strict";
import { test } from "node:test";
import { onlyMatching } from "./only-matching.ts";
import { clusterRow } from "./proxy-config-cluster.ts";
import { endpointRows } from "./proxy-config-endpoint.ts";
import { listenerRows } from "./proxy-config-listener.ts";
import { parseLevels } from "./proxy-config-log.ts";
import { routeRows, routeTable } from "./proxy-config-route.ts";

const config = (kind: string) => ({
  filter_metadata: { istio: { config: `/apis/networking.istio.io/v1/namespaces/shop/${kind}/catalog` } },
});

const rowCases: readonly { name: string; rows: unknown; expected: unknown }[] = [
  {
    name: "a cluster of the mesh",
    rows: clusterRow({ name: "outbound|80|v1|catalog.shop", type: "EDS", metadata: config("destination-rule") }),
    expected: ["catalog.shop", "80", "v1", "outbound", "EDS", "catalog.shop"],
  },
  {
    name: "another cluster",
    rows: clusterRow({ name: "PassthroughCluster", cluster_type: { name: "envoy.clusters.dynamic_forward_proxy" } }),
    expected: ["PassthroughCluster", "-", "-", "-", "dynamic_forward_proxy", ""],
  },
  {
    name: "an inbound cluster",
    rows: clusterRow({ name: "inbound|3000||" }),
    expected: ["-", "3000", "-", "inbound", "STATIC", ""],
  },
  {
    name: "endpoints",
    rows: endpointRows({
      name: "outbound|80||catalog.shop",
      host_statuses: [
        { address: { socket_address: { address: "127.0.0.1", port_value: 3000 } } },
        {
          address: { pipe: { path: "/s" } },
          health_status: { eds_health_status: "DRAINING", failed_outlier_check: true },
        },
      ],
    }),
    expected: [
      ["127.0.0.1:3000", "HEALTHY", "OK", "outbound|80||catalog.shop"],
      ["unix:/s", "DRAINING", "FAILED", "outbound|80||catalog.shop"],
    ],
  },
  {
    name: "a gateway's listener",
    rows: listenerRows({
      name: "0.0.0.0_8080",
      address: { socket_address: { address: "127.9.9.2", port_value: 8080 } },
      additional_addresses: [{ address: { socket_address: { address: "127.0.0.1", port_value: 80 } } }],
      filter_chains: [{ filters: [{ name: "hcm", typed_config: { rds: { route_config_name: "http.8080" } } }] }],
    }),
    expected: [["127.9.9.2,127.0.0.1:80", "8080", "ALL", "Route: http.8080"]],
  },
  {
    name: "an inbound listener",
    rows: listenerRows({
      name: "127.9.9.1_3000",
      address: { socket_address: { address: "127.9.9.1", port_value: 3000 } },
      filter_chains: [{ filters: [{ name: "hcm", typed_config: { route_config: { name: "inbound|3000||" } } }] }],
    }),
    expected: [["127.9.9.1", "3000", "ALL", "Inline Route: inbound|3000||"]],
  },
  {
    name: "routes",
    rows: routeRows({
      name: "http_proxy",
      virtual_hosts: [
        {
          name: "catalog:80",
          domains: ["catalog", "catalog:80", "catalog.shop"],
          metadata: { filter_metadata: { tulle: { revision: "63237d4c1ca4" } } },
          routes: [
            { match: { prefix: "/items", headers: [{ name: "x-a" }] }, metadata: config("virtual-service") },
            { match: { path: "/exact" } },
            { match: { connect_matcher: {} } },
          ],
        },
      ],
    }),
    expected: [
      ["http_proxy", "catalog:80", "catalog, + 2 more...", "/items* {x-a}", "catalog.shop", "63237d4c1ca4"],
      ["http_proxy", "catalog:80", "catalog, + 2 more...", "/exact", "", "63237d4c1ca4"],
      ["http_proxy", "catalog:80", "catalog, + 2 more...", "CONNECT", "", "63237d4c1ca4"],
    ],
  },
];

for (const { name, rows, expected } of rowCases) {
  test(`table: ${name}`, () => assert.deepEqual(rows, expected));
}

const narrowRoutes: readonly { name: string; hosts: readonly string[]; paths: readonly string[]; expected: string }[] =
  [
    {
      name: "a gateway's are known by what they match",
      hosts: ["*:80"],
      paths: ["/one", "/two"],
      expected: `MATCH
  NAME  VHOST NAME  DOMAINS  VIRTUAL SERVICE  REVISION
/one
  http  *:80        *
/two
  http  *:80        *
`,
    },
    {
      name: "a sidecar's are known by their hosts",
      hosts: ["a:80", "b:80"],
      paths: ["/"],
      expected: `VHOST NAME
  NAME  DOMAINS  MATCH  VIRTUAL SERVICE  REVISION
a:80
  http  *        /
b:80
  http  *        /
`,
    },
  ];

for (const { name, hosts, paths, expected } of narrowRoutes) {
  test(`routes on a narrow terminal: ${name}`, () => {
    const routes = paths.map((path) => ({ match: { path } }));
    const table = { name: "http", virtual_hosts: hosts.map((host) => ({ name: host, domains: ["*"], routes })) };
    assert.equal(routeTable([table], 56), expected);
  });
}

test("a filter that leaves nothing says so, with what there is", () => {
  const filter = { nameOf: (name: string) => name, what: "cluster of", id: "web.shop" };
  assert.deepEqual(onlyMatching(["a", "b", "a"], "a", filter), ["a", "a"]);
  assert.deepEqual(onlyMatching(["a", "b"], undefined, filter), ["a", "b"]);
  assert.throws(() => onlyMatching(["catalog.shop.svc", "web"], "catalog", filter), {
    message: "the proxy of web.shop has no cluster of catalog",
    hint: "It has:\n  catalog.shop.svc",
  });
});

const levelCases: readonly { text: string; expected: unknown }[] = [
  { text: "debug", expected: [{ logger: undefined, level: "debug" }] },
  {
    text: "http:debug,router:trace",
    expected: [
      { logger: "http", level: "debug" },
      { logger: "router", level: "trace" },
    ],
  },
];

for (const { text, expected } of levelCases) {
  test(`levels: ${text}`, () => assert.deepEqual(parseLevels(text), expected));
}

for (const text of ["loud", "http:loud", ":debug", ""]) {
  test(`no levels: "${text}"`, () => assert.throws(() => parseLevels(text)));
}
