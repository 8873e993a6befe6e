// What a sidecar is told of connections that the kernel redirects to it, and how the mode keeps views apart.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, MemoryStore } from "@tulle/config";
import { buildEndpoints } from "../snapshot/build-endpoints.ts";
import { buildSnapshot } from "../snapshot/build-snapshot.ts";
import { anyAddresses } from "./captured-sidecar.ts";
import type { Proxy } from "./proxy.ts";
import type { SidecarOwn } from "./proxy-view.ts";
import { scope } from "./scope.ts";

const sidecar: Proxy = {
  nodeId: "sidecar~10.1.1.1~a-1.shop~x",
  type: "sidecar",
  address: "10.1.1.1",
  name: "a-1",
  namespace: "shop",
  labels: { app: "a" },
  clusterId: "local",
  version: "",
  interceptionMode: "REDIRECT",
  appAddress: "127.0.0.1",
  podPorts: [],
};

const documents = `
{ apiVersion: v1, kind: Service, metadata: { name: a, namespace: shop }, spec: { clusterIP: 10.96.0.1, selector: { app: a }, ports: [{ name: http, port: 80, targetPort: 3000 }, { name: tcp, port: 25, targetPort: 2525 }, { name: http-own, port: 15001, targetPort: 3001 }] } }
---
{ apiVersion: security.tulle.io/v1, kind: PeerAuthentication, metadata: { name: a, namespace: shop }, spec: { selector: { matchLabels: { app: a } }, mtls: { mode: PERMISSIVE }, portLevelMtls: { "2525": { mode: STRICT }, "9999": { mode: STRICT }, "15006": { mode: STRICT } } } }`;

const store = new MemoryStore();
await store.applyAll(loadText(documents, "mesh.yaml").resources);
const snapshot = buildSnapshot(store, { trustDomain: "cluster.local" });
const endpoints = buildEndpoints(store, snapshot);
const viewOf = (proxy: Proxy) => scope(snapshot, proxy, endpoints);

const capturedOf = (proxy: Proxy) => (viewOf(proxy).own.value as SidecarOwn).captured;

test("requests are taken by port, connections by address, and the proxy's own port is nobody's", () => {
  const outbound = capturedOf(sidecar)!.outbound;
  assert.deepEqual(outbound.httpPorts, [80]);
  assert.deepEqual(outbound.connections, [
    {
      address: "10.96.0.1",
      port: 25,
      destinations: [{ cluster: "outbound|25||a.shop.svc.cluster.local", weight: 1 }],
    },
  ]);
});

test("a port of which a policy speaks has a mode of its own, whether a Service leads to it or not; 15006 is the proxy's", () => {
  const { otherPorts, refusedPorts } = capturedOf(sidecar)!;
  const modes = otherPorts.map(({ port, mutualTls }) => [port, mutualTls?.mode]);
  assert.deepEqual(modes, [
    [undefined, "PERMISSIVE"],
    [9999, "STRICT"],
  ]);
  assert.deepEqual(refusedPorts, []);
});

test("without a certificate STRICT ports let nobody in, and do not fall to those that are open", () => {
  const { otherPorts, refusedPorts } = capturedOf({ ...sidecar, withoutCertificate: true })!;
  assert.deepEqual([otherPorts, refusedPorts], [[{}], [2525, 9999]]);
});

test("the mode is part of every key", () => {
  const [one, other] = [viewOf(sidecar), viewOf({ ...sidecar, interceptionMode: "NONE" })];
  for (const section of ["clusters", "routes", "own"] as const) assert.notEqual(one[section].key, other[section].key);
  assert.equal(capturedOf({ ...sidecar, interceptionMode: "NONE" }), undefined);
  assert.notEqual(viewOf({ ...sidecar, interceptionMode: "TPROXY" }).own.key, one.own.key);
});

for (const { ips, expected } of [
  { ips: undefined, expected: ["0.0.0.0"] },
  { ips: ["10.1.1.1", "fd00::1"], expected: ["0.0.0.0", "::"] },
  { ips: ["fd00::1"], expected: ["::"] },
]) {
  test(`a workload at ${ips?.join(" and ") ?? "the address of its id"} is captured at ${expected.join(" and ")}`, () => {
    assert.deepEqual(anyAddresses({ ...sidecar, ...(ips === undefined ? {} : { instanceIps: ips }) }), expected);
  });
}
