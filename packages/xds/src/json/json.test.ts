// What the JSON codec reads and refuses, and how it writes what it cannot decode.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema, BoolValueSchema, UInt32ValueSchema, anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { BootstrapSchema } from "../generated/envoy/config/bootstrap/v3/bootstrap_pb.ts";
import { ClusterSchema, Cluster_DiscoveryType } from "../generated/envoy/config/cluster/v3/cluster_pb.ts";
import { ListenerSchema } from "../generated/envoy/config/listener/v3/listener_pb.ts";
import { PermissionSchema } from "../generated/envoy/config/rbac/v3/rbac_pb.ts";
import { HttpConnectionManagerSchema } from "../generated/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { RouterSchema } from "../generated/envoy/extensions/filters/http/router/v3/router_pb.ts";
import { messageFromJson } from "./from-json.ts";
import { formatDocumentProblem, messageFromYaml } from "./from-yaml.ts";
import { messageToJson } from "./to-json.ts";

const httpConnectionManagerUrl =
  "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const routerUrl = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";

test("snake_case and camelCase, durations, wrappers, Struct and Any are read", () => {
  const result = messageFromJson(BootstrapSchema, {
    node: { id: "n", metadata: { LABELS: { app: "a" }, list: [1, true, null] } },
    static_resources: {
      clusters: [
        {
          name: "c",
          type: "STRICT_DNS",
          connect_timeout: "0.25s",
          circuitBreakers: { thresholds: [{ max_connections: 7 }] },
          typed_extension_protocol_options: {
            x: { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router", dynamic_stats: false },
          },
        },
      ],
    },
  });
  assert.ok(result.ok);
  const cluster = result.message.staticResources!.clusters[0]!;
  assert.deepEqual(cluster.clusterDiscoveryType, { case: "type", value: Cluster_DiscoveryType.STRICT_DNS });
  assert.equal(cluster.connectTimeout!.nanos, 250_000_000);
  assert.equal(cluster.circuitBreakers!.thresholds[0]!.maxConnections, 7);
  assert.deepEqual(result.message.node!.metadata, { LABELS: { app: "a" }, list: [1, true, null] });
  const router = anyUnpack(cluster.typedExtensionProtocolOptions["x"]!, RouterSchema);
  assert.equal(router!.dynamicStats, false);
});

const refusals = [
  {
    name: "unknown field, snake_case",
    json: { static_resources: { listeners: [{ name: "l", filter_chain: [] }] } },
    expected: [
      `static_resources.listeners[0].filter_chain: unknown field in envoy.config.listener.v3.Listener; did you mean "filter_chains"?`,
    ],
  },
  {
    name: "unknown field, camelCase, far from any",
    json: { node: { zzzzzzzzzz: 1 } },
    expected: ["node.zzzzzzzzzz: unknown field in envoy.config.core.v3.Node"],
  },
  {
    name: "unknown enum value",
    json: { staticResources: { clusters: [{ lbPolicy: "ROUNDROBIN" }] } },
    expected: [
      `staticResources.clusters[0].lbPolicy: unknown value "ROUNDROBIN"; did you mean "ROUND_ROBIN"? (one of ROUND_ROBIN, LEAST_REQUEST, RING_HASH, RANDOM, MAGLEV, CLUSTER_PROVIDED, LOAD_BALANCING_POLICY_CONFIG)`,
    ],
  },
  {
    name: "unknown Any type",
    json: { static_resources: { clusters: [{ transport_socket: { typed_config: { "@type": `${routerUrl}s` } } }] } },
    expected: [
      `static_resources.clusters[0].transport_socket.typed_config.@type: unknown type "envoy.extensions.filters.http.router.v3.Routers"; did you mean "envoy.extensions.filters.http.router.v3.Router"?`,
    ],
  },
  {
    name: "unknown field inside an Any",
    json: {
      static_resources: {
        listeners: [
          {
            filter_chains: [
              { filters: [{ typed_config: { "@type": httpConnectionManagerUrl, stat_prefx: "a", route_config: {} } }] },
            ],
          },
        ],
      },
    },
    expected: [
      `static_resources.listeners[0].filter_chains[0].filters[0].typed_config.stat_prefx: unknown field in envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager; did you mean "stat_prefix"?`,
    ],
  },
  {
    name: "Any without @type",
    json: { static_resources: { clusters: [{ transport_socket: { typed_config: { x: 1 } } }] } },
    expected: [`static_resources.clusters[0].transport_socket.typed_config: has no "@type"`],
  },
  {
    name: "a bad duration and a bad number, both told",
    json: { static_resources: { clusters: [{ connect_timeout: "fast", per_connection_buffer_limit_bytes: "many" }] } },
    expected: [
      `static_resources.clusters[0].connect_timeout: `,
      `static_resources.clusters[0].per_connection_buffer_limit_bytes: `,
    ],
  },
  {
    name: "list where an object belongs, and the reverse",
    json: { node: [], static_resources: { clusters: 7 } },
    expected: [
      "node: expected an object (envoy.config.core.v3.Node), found a list",
      "static_resources.clusters[0]: expected an object (envoy.config.cluster.v3.Cluster), found 7",
    ],
  },
  {
    name: "two spellings of one field",
    json: { static_resources: { clusters: [{ connect_timeout: "1s", connectTimeout: "2s" }] } },
    expected: [`static_resources.clusters[0].connectTimeout: cannot stand beside "connect_timeout"`],
  },
  {
    name: "two members of one oneof",
    json: { static_resources: { clusters: [{ type: "EDS", cluster_type: {} }] } },
    expected: [`static_resources.clusters[0].cluster_type: cannot stand beside "type"`],
  },
];

test("what Envoy takes beyond the standard: enums in any case, a number in quotes, one value for a list, durations by fields", () => {
  const result = messageFromJson(BootstrapSchema, {
    static_resources: {
      clusters: [
        { name: "a", type: "strict_dns" },
        { name: "b", type: "Static" },
        { name: "c", type: "3", connect_timeout: { seconds: 1, nanos: 5_000_000 } },
      ],
    },
    dynamic_resources: { ads_config: { api_type: "grpc", grpc_services: { envoy_grpc: { cluster_name: "a" } } } },
  });
  assert.ok(result.ok);
  const { staticResources, dynamicResources } = result.message;
  assert.deepEqual(
    staticResources?.clusters.map(({ clusterDiscoveryType }) => clusterDiscoveryType.value),
    [1, 0, 3],
  );
  assert.deepEqual(
    [staticResources.clusters[2]!.connectTimeout?.seconds, staticResources.clusters[2]!.connectTimeout?.nanos],
    [1n, 5_000_000],
  );
  assert.equal(dynamicResources?.adsConfig?.apiType, 2);
  assert.equal(dynamicResources?.adsConfig?.grpcServices.length, 1);
  const odd = { clusters: [{ connect_timeout: { seconds: 1, minutes: 1 } }] };
  assert.ok(!messageFromJson(BootstrapSchema, { static_resources: odd }).ok);
  // Envoy knows no dashes.
  assert.ok(!messageFromJson(BootstrapSchema, { static_resources: { clusters: [{ type: "strict-dns" }] } }).ok);
});

for (const { name, json, expected } of refusals) {
  test(`refuses ${name}`, () => {
    const result = messageFromJson(BootstrapSchema, json);
    assert.ok(!result.ok);
    const found = result.problems.map((problem) => `${problem.path}: ${problem.message}`);
    assert.equal(found.length, expected.length, found.join("\n"));
    for (const [index, start] of expected.entries()) {
      // Values that protobuf-es refuses have its words; their place is what is ours.
      assert.ok(start.endsWith(": ") ? found[index]!.startsWith(start) : found[index] === start, found.join("\n"));
    }
  });
}

test("a document nested too deep is refused, not overflowed", () => {
  let json: object = { any: true };
  for (let depth = 0; depth < 5_000; depth += 1) json = { not_rule: json };
  const result = messageFromJson(PermissionSchema, json);
  assert.ok(!result.ok);
  assert.match(result.problems[0]!.message, /nested deeper than 100 messages/);
});

test("an Any of an unknown type is carried and shown as bytes", () => {
  const value = Uint8Array.of(1, 2, 3);
  const unknown = create(AnySchema, { typeUrl: "type.googleapis.com/acme.Filter", value });
  const manager = create(HttpConnectionManagerSchema, {
    statPrefix: "s",
    httpFilters: [{ name: "acme", configType: { case: "typedConfig", value: unknown } }],
  });
  const filter = {
    name: "hcm",
    configType: { case: "typedConfig" as const, value: anyPack(HttpConnectionManagerSchema, manager) },
  };
  const listener = create(ListenerSchema, { name: "l", filterChains: [{ filters: [filter] }] });
  assert.deepEqual(messageToJson(ListenerSchema, listener, { fieldNames: "snake_case" }), {
    name: "l",
    filter_chains: [
      {
        filters: [
          {
            name: "hcm",
            typed_config: {
              "@type": httpConnectionManagerUrl,
              stat_prefix: "s",
              http_filters: [
                {
                  name: "acme",
                  typed_config: { "@type": "type.googleapis.com/acme.Filter", "@undecoded": "AQID" },
                },
              ],
            },
          },
        ],
      },
    ],
  });
  assert.deepEqual(unknown.value, value, "the message itself is untouched");
});

test("an Any with broken bytes is shown as bytes", () => {
  const broken = create(AnySchema, { typeUrl: routerUrl, value: Uint8Array.of(0xff) });
  const cluster = create(ClusterSchema, { name: "c", typedExtensionProtocolOptions: { x: broken } });
  assert.deepEqual(messageToJson(ClusterSchema, cluster), {
    name: "c",
    typedExtensionProtocolOptions: { x: { "@type": routerUrl, "@undecoded": "/w==" } },
  });
});

test("maps are written in the order of their keys", () => {
  const packed = anyPack(BoolValueSchema, create(BoolValueSchema, { value: true }));
  const other = anyPack(UInt32ValueSchema, create(UInt32ValueSchema, { value: 3 }));
  const cluster = create(ClusterSchema, { name: "c", typedExtensionProtocolOptions: { b: packed, a: other } });
  assert.equal(
    JSON.stringify(messageToJson(ClusterSchema, cluster)),
    '{"name":"c","typedExtensionProtocolOptions":{"a":{"@type":"type.googleapis.com/google.protobuf.UInt32Value","value":3},"b":{"@type":"type.googleapis.com/google.protobuf.BoolValue","value":true}}}',
  );
});

test("what was written is read back the same", () => {
  const result = messageFromJson(BootstrapSchema, {
    admin: { address: { socket_address: { address: "127.0.0.1", port_value: 15000 } } },
    static_resources: { clusters: [{ name: "c", connect_timeout: "5s", lb_policy: "RANDOM" }] },
  });
  assert.ok(result.ok);
  const again = messageFromJson(BootstrapSchema, messageToJson(BootstrapSchema, result.message));
  assert.ok(again.ok);
  assert.deepEqual(toBinary(BootstrapSchema, again.message), toBinary(BootstrapSchema, result.message));
});

const documents = [
  {
    name: "YAML, with the place of an unknown field",
    text: "admin: {}\nstatic_resources:\n  listeners:\n  - name: a\n    adress: {}\n",
    expected: [
      `b.yaml:5:5: static_resources.listeners[0].adress: unknown field in envoy.config.listener.v3.Listener; did you mean "address"?`,
    ],
  },
  {
    name: "JSON, with the place of an unknown field",
    text: '{\n  "admin": {},\n  "statc_resources": {}\n}',
    expected: [
      `b.yaml:3:3: statc_resources: unknown field in envoy.config.bootstrap.v3.Bootstrap; did you mean "static_resources"?`,
    ],
  },
  { name: "broken YAML", text: "a: [1\n", expected: ["b.yaml:2:1: "] },
  { name: "a key given twice", text: "admin: {}\nadmin: {}\n", expected: ["b.yaml:2:1: Map keys must be unique"] },
  { name: "an empty document", text: "", expected: ["b.yaml:1:1: expected an object"] },
];

for (const { name, text, expected } of documents) {
  test(`refuses a document: ${name}`, () => {
    const result = messageFromYaml(BootstrapSchema, text, "b.yaml");
    assert.ok(!result.ok);
    const found = result.problems.map(formatDocumentProblem);
    assert.equal(found.length, expected.length);
    for (const [index, start] of expected.entries()) assert.ok(found[index]!.startsWith(start), found.join("\n"));
  });
}

test("a YAML document with anchors is read", () => {
  const text = "static_resources:\n  clusters:\n  - &c {name: a, connect_timeout: 1s}\n  - {<<: *c, name: b}\n";
  const result = messageFromYaml(BootstrapSchema, text.replace("{<<: *c, name: b}", "*c"), "b.yaml");
  assert.ok(result.ok);
  assert.deepEqual(
    result.message.staticResources!.clusters.map((cluster) => cluster.name),
    ["a", "a"],
  );
});
