// How many addresses of pods a sidecar has listeners for, and that the workload's own is none of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointSnapshot, MeshEndpoint, MeshService } from "../snapshot/mesh-snapshot.ts";
import { maxPodListeners, podConnections } from "./captured-pods.ts";
import type { CapturedPods } from "./proxy-view.ts";
import type { Proxy } from "./proxy.ts";

const proxy: Proxy = {
  nodeId: "sidecar~10.1.1.1~a-1.shop~x",
  type: "sidecar",
  address: "10.1.1.1",
  instanceIps: ["10.1.1.1", "fd00::1"],
  name: "a-1",
  namespace: "shop",
  labels: {},
  clusterId: "local",
  version: "",
  interceptionMode: "REDIRECT",
  appAddress: "127.0.0.1",
  podPorts: [],
};

function listenersOf(addresses: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const services = Object.keys(addresses).map((name): MeshService & { hostname: string } => ({
    hostname: `${name}.shop.svc.cluster.local`,
    name,
    namespace: "shop",
    addresses: [],
    selector: {},
    ports: [{ name: "tcp", number: 5432, targetPort: 5432, protocol: "tcp" }],
  }));
  const pods = services.map(({ hostname }): CapturedPods => ({
    hostname,
    port: 5432,
    destinations: [{ cluster: `outbound|5432||${hostname}`, weight: 1 }],
  }));
  const endpointAt = (address: string): MeshEndpoint => ({
    address,
    port: 5432,
    labels: {},
    workload: "",
    namespace: "shop",
  });
  const byServicePort = services.map(
    ({ hostname, name }) => [`${hostname}:5432`, addresses[name]!.map(endpointAt)] as const,
  );
  const endpoints: EndpointSnapshot = {
    byServicePort: new Map(byServicePort),
    leaving: new Map(),
    notReady: new Map(),
    encryptedOnly: [],
  };
  return podConnections(pods, { type: "sidecar", services }, proxy, endpoints).map(({ address }) => address);
}

function many(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `10.2.${Math.floor(index / 250)}.${index % 250}`);
}

test("the workload's own addresses have none", () => {
  assert.deepEqual(listenersOf({ a: ["10.1.1.1", "10.1.1.2", "fd00::1", "fd00::2"] }), ["10.1.1.2", "fd00::2"]);
});

test("as many as may be", () => {
  assert.equal(listenersOf({ a: many(maxPodListeners) }).length, maxPodListeners);
});

test("a Service's port that goes beyond has none, and those after it have theirs", () => {
  assert.deepEqual(listenersOf({ a: ["10.3.0.1"], b: many(maxPodListeners), c: ["10.3.0.2"] }), [
    "10.3.0.1",
    "10.3.0.2",
  ]);
});

test("pods that two Services have are counted once", () => {
  const pods = many(maxPodListeners - 1);
  assert.equal(listenersOf({ a: pods, b: pods, c: ["10.3.0.2"] }).length, maxPodListeners);
});
