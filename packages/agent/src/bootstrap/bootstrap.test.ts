// The document from which a proxy starts, and what it tells its peers of itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentSettings, parseSettings } from "../settings.ts";
import { bootstrapDocument, bootstrapMessage, nodeId } from "./bootstrap.ts";
import { decodePeerMetadata, encodePeerMetadata, peerMetadata } from "./peer-metadata.ts";

function settings(env: Readonly<Record<string, string>> = {}): AgentSettings {
  const parsed = parseSettings({
    POD_NAME: "catalog-v1-abc-xyz",
    POD_NAMESPACE: "shop",
    INSTANCE_IP: "127.1.0.5",
    TULLE_XDS_ADDRESS: "127.0.0.1:15010",
    TULLE_STATE_DIR: "/tmp/pod",
    TULLE_NODE_METADATA: JSON.stringify({
      LABELS: { app: "catalog", version: "v1" },
      WORKLOAD_NAME: "catalog-v1",
      CLUSTER_ID: "local",
      APP_ADDRESS: "127.1.0.6",
    }),
    ...env,
  });
  assert.ok(parsed.ok);
  return parsed.settings;
}

test("the node has Istio's id, cluster and metadata", () => {
  const { node } = bootstrapMessage(bootstrapDocument(settings(), { xds: "/tmp/pod/xds.sock", secrets: undefined }));
  assert.equal(node?.id, "sidecar~127.1.0.5~catalog-v1-abc-xyz.shop~shop.svc.cluster.local");
  assert.equal(node?.cluster, "catalog.shop");
  assert.deepEqual(node?.metadata, {
    NAME: "catalog-v1-abc-xyz",
    NAMESPACE: "shop",
    SERVICE_ACCOUNT: "default",
    INSTANCE_IPS: "127.1.0.5",
    CLUSTER_ID: "local",
    MESH_ID: "cluster.local",
    INTERCEPTION_MODE: "NONE",
    LABELS: { app: "catalog", version: "v1" },
    WORKLOAD_NAME: "catalog-v1",
    APP_ADDRESS: "127.1.0.6",
  });
});

test("a gateway is a router, and without a label its workload names its cluster", () => {
  const env = { TULLE_PROXY_TYPE: "router", TULLE_NODE_METADATA: '{"WORKLOAD_NAME":"gateway"}' };
  const gateway = settings(env);
  assert.match(nodeId(gateway), /^router~/);
  assert.equal(
    bootstrapMessage(bootstrapDocument(gateway, { xds: "/s", secrets: undefined })).node?.cluster,
    "gateway.shop",
  );
});

test("the proxy listens for people and dials its peers at the pod's address, and meets the agent on its socket", () => {
  const message = bootstrapMessage(bootstrapDocument(settings(), { xds: "/tmp/pod/xds.sock", secrets: undefined }));
  assert.deepEqual(message.admin?.address?.address.value, {
    $typeName: "envoy.config.core.v3.SocketAddress",
    protocol: 0,
    address: "127.1.0.5",
    portSpecifier: { case: "portValue", value: 15_000 },
    resolverName: "",
    ipv4Compat: false,
    networkNamespaceFilepath: "",
  });
  assert.equal(message.clusterManager?.upstreamBindConfig?.sourceAddress?.address, "127.1.0.5");
  const endpoint = message.staticResources?.clusters[0]?.loadAssignment?.endpoints[0]?.lbEndpoints[0]?.hostIdentifier;
  assert.ok(endpoint?.case === "endpoint");
  assert.deepEqual(endpoint.value.address?.address.value, {
    $typeName: "envoy.config.core.v3.Pipe",
    path: "/tmp/pod/xds.sock",
    mode: 0,
  });
});

test("a workload with an identity finds its secrets on a socket of its own, over HTTP/2", () => {
  const sockets = { xds: "/tmp/pod/xds.sock", secrets: "/tmp/pod/sds.sock" };
  const clusters = bootstrapMessage(bootstrapDocument(settings(), sockets)).staticResources?.clusters ?? [];
  assert.deepEqual(
    clusters.map(({ name }) => name),
    ["xds-grpc", "sds-grpc"],
  );
  const endpoint = clusters[1]?.loadAssignment?.endpoints[0]?.lbEndpoints[0]?.hostIdentifier;
  assert.ok(endpoint?.case === "endpoint" && endpoint.value.address?.address.case === "pipe");
  assert.equal(endpoint.value.address.address.value.path, "/tmp/pod/sds.sock");
  assert.deepEqual(Object.keys(clusters[1]!.typedExtensionProtocolOptions), [
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
  ]);
});

test("without a limit of memory connections alone are bounded; with one requests and connections are given up near it", () => {
  const sockets = { xds: "/s", secrets: undefined };
  const overloadOf = (env: Readonly<Record<string, string>>) =>
    bootstrapMessage(bootstrapDocument(settings(env), sockets)).overloadManager;
  const none = overloadOf({});
  assert.deepEqual([none?.resourceMonitors.length, none?.actions.length], [1, 0]);
  const limited = overloadOf({ TULLE_PROXY_MEMORY_LIMIT_BYTES: "268435456" });
  assert.deepEqual(
    limited?.resourceMonitors.map(({ name }) => name),
    ["envoy.resource_monitors.global_downstream_max_connections", "envoy.resource_monitors.fixed_heap"],
  );
  assert.deepEqual(
    limited?.actions.map(({ name }) => name.replace("envoy.overload_actions.", "")),
    ["shrink_heap", "disable_http_keepalive", "stop_accepting_requests", "reject_incoming_connections"],
  );
});

const workloads = [
  {
    name: "plain labels",
    metadata: { LABELS: { app: "catalog", version: "v1" }, WORKLOAD_NAME: "catalog-v1", CLUSTER_ID: "local" },
    expected: ["catalog-v1", "shop", "catalog", "v1", "catalog", "v1", "local", ""],
  },
  {
    name: "canonical labels win",
    metadata: {
      LABELS: { "service.istio.io/canonical-name": "cat", "service.istio.io/canonical-revision": "7", app: "a" },
      WORKLOAD_NAME: "w",
    },
    expected: ["w", "shop", "a", "", "cat", "7", "", ""],
  },
  {
    name: "no labels",
    metadata: {},
    expected: ["catalog-v1-abc-xyz", "shop", "", "", "catalog-v1-abc-xyz", "latest", "", ""],
  },
];

for (const { name, metadata, expected } of workloads) {
  test(`peer metadata: ${name}`, () => {
    const told = peerMetadata(settings({ TULLE_NODE_METADATA: JSON.stringify(metadata) }));
    assert.deepEqual(Object.values(told), expected);
    const encoded = encodePeerMetadata(told);
    assert.match(encoded, /^[A-Za-z0-9+/]+=*$/);
    assert.deepEqual(decodePeerMetadata(encoded), told);
  });
}

for (const value of ["", "not base64 of anything", Buffer.from("[1]").toString("base64"), "a".repeat(9000)]) {
  test(`peer metadata that nobody of us wrote: ${value.slice(0, 30)}`, () => {
    assert.equal(decodePeerMetadata(value), undefined);
  });
}

const collector = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://collector.test:4317" };
for (const { name, env, expected } of [
  { name: "nobody asks", env: {}, expected: undefined },
  {
    name: "https, which is not spoken",
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector.test" },
    expected: undefined,
  },
  {
    name: "gRPC",
    env: { ...collector, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc", OTEL_METRIC_EXPORT_INTERVAL: "5000" },
    expected: { port: 4317, flushSeconds: 5n, sinks: 1 },
  },
  {
    name: "HTTP",
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://[::1]" },
    expected: { port: 80, flushSeconds: 60n, sinks: 1 },
  },
  {
    name: "to a Service of the mesh, through the sidecar",
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.shop.svc.cluster.local:4318" },
    expected: { port: 15_007, flushSeconds: 60n, sinks: 1 },
  },
  {
    name: "to a Service of the mesh, of a gateway, which has no listener for it",
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.shop.svc.cluster.local:4318", TULLE_PROXY_TYPE: "router" },
    expected: { port: 4318, flushSeconds: 60n, sinks: 1 },
  },
]) {
  test(`metrics by OTLP: ${name}`, () => {
    const message = bootstrapMessage(bootstrapDocument(settings(env), { xds: "/s", secrets: undefined }));
    const cluster = message.staticResources?.clusters.find((each) => each.name === "otlp-metrics");
    const endpoint = cluster?.loadAssignment?.endpoints[0]?.lbEndpoints[0]?.hostIdentifier;
    const address = endpoint?.case === "endpoint" ? endpoint.value.address?.address : undefined;
    const port = address?.case === "socketAddress" ? address.value.portSpecifier.value : undefined;
    const found = cluster && {
      port,
      flushSeconds: message.statsFlushInterval?.seconds,
      sinks: message.statsSinks.length,
    };
    assert.deepEqual(found, expected);
  });
}

test("in a network of its own the pod has its proxy's pages at localhost, and its proxy calls from any address", () => {
  const env = { TULLE_NODE_METADATA: '{"INTERCEPTION_MODE":"REDIRECT"}' };
  const message = bootstrapMessage(bootstrapDocument(settings(env), { xds: "/s", secrets: undefined }));
  const { value } = message.admin!.address!.address;
  assert.ok(value !== undefined && "address" in value);
  assert.equal(value.address, "127.0.0.1");
  assert.equal(message.clusterManager, undefined);
});
