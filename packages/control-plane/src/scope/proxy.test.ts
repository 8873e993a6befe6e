// Node ids and metadata as proxies send them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { parseNode, type Proxy } from "./proxy.ts";

const id = "sidecar~10.1.2.3~catalog-v1-5d8f.shop~shop.svc.cluster.local";

const good: readonly { name: string; id: string; metadata?: JsonObject; expected: Partial<Proxy> }[] = [
  {
    name: "the id alone",
    id,
    expected: {
      type: "sidecar",
      address: "10.1.2.3",
      name: "catalog-v1-5d8f",
      namespace: "shop",
      clusterId: "from-cluster",
      interceptionMode: "REDIRECT",
      appAddress: "127.0.0.1",
      version: "1.40.2",
      podPorts: [],
    },
  },
  { name: "a gateway", id: "router~10.1.2.3~gw-1.tulle-system~x", expected: { type: "router", name: "gw-1" } },
  {
    name: "metadata beats the id",
    id,
    metadata: {
      NAMESPACE: "other",
      CLUSTER_ID: "local",
      INTERCEPTION_MODE: "NONE",
      APP_ADDRESS: "127.2.0.1",
      TULLE_VERSION: "0.1.0",
      LABELS: { app: "catalog", version: 1 },
    },
    expected: {
      namespace: "other",
      clusterId: "local",
      interceptionMode: "NONE",
      appAddress: "127.2.0.1",
      version: "0.1.0",
      labels: { app: "catalog" },
    },
  },
  {
    name: "ports as Istio sends them, as JSON text",
    id,
    metadata: { POD_PORTS: '[{"name":"http","containerPort":3000,"protocol":"TCP"},{"containerPort":"x"},7]' },
    expected: { podPorts: [{ name: "http", containerPort: 3000 }] },
  },
  { name: "ports that are no JSON", id, metadata: { POD_PORTS: "[" }, expected: { podPorts: [] } },
];

for (const { name, id: nodeId, metadata = {}, expected } of good) {
  test(name, () => {
    const version = { majorNumber: 1, minorNumber: 40, patch: 2 };
    const userAgentVersionType = { case: "userAgentBuildVersion", value: { version } } as const;
    const parsed = parseNode(
      create(NodeSchema, { id: nodeId, cluster: "from-cluster", metadata, userAgentVersionType }),
    );
    assert.ok("proxy" in parsed);
    for (const [field, value] of Object.entries(expected)) {
      assert.deepEqual(parsed.proxy[field as keyof Proxy], value, field);
    }
  });
}

const bad: readonly { name: string; id: string; expected: RegExp }[] = [
  { name: "no id", id: "", expected: /is not <type>~<address>/ },
  { name: "too few parts", id: "sidecar~10.1.2.3~a.b", expected: /is not <type>~<address>/ },
  { name: "another type", id: "ztunnel~10.1.2.3~a.b~c", expected: /"ztunnel" is not known/ },
  { name: "no namespace", id: "sidecar~10.1.2.3~pod~c", expected: /names no pod and namespace/ },
  { name: "no address", id: "sidecar~~pod.ns~c", expected: /has no address/ },
];

for (const { name, id: nodeId, expected } of bad) {
  test(`a node id with ${name} is turned away`, () => {
    const parsed = parseNode(create(NodeSchema, { id: nodeId }));
    assert.match("problem" in parsed ? parsed.problem : "accepted", expected);
  });
}
