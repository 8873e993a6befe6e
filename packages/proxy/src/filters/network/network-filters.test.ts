// Chains of network filters: what is accepted, what is refused and where, and which cluster a TCP proxy takes.
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { compileListener } from "../../listener/compile-listener.ts";
import { detachedScope } from "../../fields/compile-scope.ts";
import { Logging } from "@tulle/telemetry";
import { DataPath } from "../../worker/data-path.ts";
import { ConnectionInfo } from "../../listener/connection-info.ts";
import { accepted, fromConfiguration, problemsOf } from "../../testing/from-configuration.ts";

const extension = (name: string, config: object): object => ({
  name,
  typed_config: { "@type": `type.googleapis.com/envoy.extensions.filters.network.${name}`, ...config },
});
const tcpProxy = (config: object): object => extension("tcp_proxy.v3.TcpProxy", { stat_prefix: "t", ...config });
const rbac = (config: object): object => extension("rbac.v3.RBAC", { stat_prefix: "r.", ...config });
const toA = tcpProxy({ cluster: "a" });
const any = [{ any: true }];
const header = { header: { name: "x", present_match: true } };

function compile(filters: readonly object[]): ReturnType<typeof compileListener> {
  const address = { socket_address: { address: "127.0.0.1", port_value: 0 } };
  const message = fromConfiguration(ListenerSchema, { name: "l", address, filter_chains: [{ filters }] });
  return compileListener(message, detachedScope());
}

const at = (index: number): string => `filter_chains[0].filters[${index}]`;

const cases: readonly { readonly name: string; readonly filters: readonly object[]; readonly expected: string[] }[] = [
  { name: "one cluster", filters: [toA], expected: [] },
  {
    name: "weights, and what makes no difference",
    filters: [
      tcpProxy({
        weighted_clusters: { clusters: [{ name: "a", weight: 1 }] },
        hash_policy: [{ source_ip: {} }],
        idle_timeout: "0s",
      }),
    ],
    expected: [],
  },
  {
    name: "subsets of hosts are a warning",
    filters: [tcpProxy({ cluster: "a", metadata_match: { filter_metadata: { "envoy.lb": { a: "b" } } } })],
    expected: [
      `${at(0)}.typed_config.metadata_match: ignored: every host of the cluster is taken, since there are no subsets of hosts`,
    ],
  },
  { name: "no cluster", filters: [tcpProxy({})], expected: [`${at(0)}.typed_config.cluster_specifier: is required`] },
  {
    name: "no name for statistics",
    filters: [tcpProxy({ cluster: "a", stat_prefix: "" })],
    expected: [`${at(0)}.typed_config.stat_prefix: value length must be at least 1 characters`],
  },
  {
    name: "a weight of zero",
    filters: [tcpProxy({ weighted_clusters: { clusters: [{ name: "a", weight: 0 }] } })],
    expected: [`${at(0)}.typed_config.weighted_clusters.clusters[0].weight: value must be greater than or equal to 1`],
  },
  {
    name: "a field that is not carried",
    filters: [tcpProxy({ cluster: "a", tunneling_config: { hostname: "h" } })],
    expected: [`${at(0)}.typed_config.tunneling_config: this field is not supported`],
  },
  {
    name: "the TCP proxy stands last",
    filters: [toA, toA],
    expected: [
      `${at(0)}: Error: terminal filter named tcp_proxy.v3.TcpProxy of type tcp_proxy.v3.TcpProxy must be the last filter in a network filter chain.`,
    ],
  },
  {
    name: "policies alone lead nowhere",
    filters: [rbac({})],
    expected: [
      `${at(0)}: Error: non-terminal filter named rbac.v3.RBAC of type rbac.v3.RBAC is the last filter in a network filter chain.`,
    ],
  },
  {
    name: "rules on addresses, names and paths",
    filters: [
      rbac({
        rules: {
          policies: {
            p: {
              permissions: [{ destination_port: 1 }, { url_path: { path: { prefix: "/" } } }],
              principals: [{ source_ip: { address_prefix: "10.0.0.0", prefix_len: 8 } }, { authenticated: {} }],
            },
          },
        },
        enforcement_type: "CONTINUOUS",
      }),
      toA,
    ],
    expected: [],
  },
  ...[
    { permissions: [{ and_rules: { rules: [{ not_rule: header }] } }], principals: any },
    { permissions: any, principals: [{ or_ids: { ids: [{ not_id: header }] } }] },
  ].map((policy) => ({
    name: "a rule on a header has nothing to look at",
    filters: [rbac({ rules: { policies: { p: policy } } }), toA],
    expected: [`${at(0)}.typed_config.rules.policies["p"]: Found header rule, not supported by RBAC network filter`],
  })),
  {
    name: "a denial that is put off",
    filters: [rbac({ delay_deny: "1s" }), toA],
    expected: [`${at(0)}.typed_config.delay_deny: ignored: a connection that is denied is closed at once`],
  },
];

for (const { name, filters, expected } of cases) {
  test(name, () => assert.deepEqual(problemsOf(compile(filters)), expected));
}

for (const { serverName, expected } of [
  { serverName: "outbound_.80_._.a.shop", expected: "outbound_.80_._.a.shop" },
  { serverName: "", expected: undefined },
]) {
  test(`the cluster of a connection for "${serverName}"`, () => {
    const { listener } = accepted(compile([extension("sni_cluster.v3.SniCluster", {}), toA]));
    const connection = new ConnectionInfo({} as Socket);
    connection.serverName = serverName;
    const dataPath = new DataPath({ logging: new Logging({ sink: () => {} }) });
    const [filter] = listener.filterChains[0]!.networkFilters;
    assert.equal(
      filter!.onNewConnection(connection, dataPath, () => undefined),
      "continue",
    );
    assert.equal(connection.filterState.get("envoy.tcp_proxy.cluster"), expected);
  });
}
