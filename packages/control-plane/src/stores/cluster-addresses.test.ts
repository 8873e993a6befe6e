// Which addresses and node ports Services get that name none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, MemoryStore, type Service } from "@tulle/config";
import { parseClusterRange, withClusterAddresses } from "./cluster-addresses.ts";

const range = parseClusterRange("10.96.0.0/24")!;

function storeOf(): MemoryStore {
  const store: MemoryStore = new MemoryStore({
    complete: (resource, previous) => withClusterAddresses(resource, previous, store.list("Service"), range),
  });
  return store;
}

async function apply(store: MemoryStore, ...specs: readonly (readonly [name: string, spec: string])[]): Promise<void> {
  for (const [name, spec] of specs) {
    const text = `{ apiVersion: v1, kind: Service, metadata: { name: ${name}, namespace: shop }, spec: ${spec} }`;
    const { resources, findings } = loadText(text, "service.yaml");
    assert.deepEqual(findings, []);
    await store.applyAll(resources);
  }
}

const specOf = (store: MemoryStore, name: string): Service["spec"] => store.get("Service", "shop", name)!.spec;

test("a Service has an address of the range, which stays when it changes and after a restart", async () => {
  const store = storeOf();
  await apply(store, ["catalog", "{ ports: [{ port: 80 }] }"]);
  const { clusterIP, clusterIPs } = specOf(store, "catalog");
  assert.match(clusterIP!, /^10\.96\.0\.\d+$/);
  assert.deepEqual(clusterIPs, [clusterIP]);
  await apply(store, ["catalog", "{ ports: [{ port: 81 }] }"]);
  assert.equal(specOf(store, "catalog").clusterIP, clusterIP);
  const other = storeOf();
  await apply(other, ["orders", "{ ports: [{ port: 80 }] }"], ["catalog", "{ ports: [{ port: 80 }] }"]);
  assert.equal(specOf(other, "catalog").clusterIP, clusterIP);
});

test("no two have one address, until there is none left; the first sixteen are nobody's", async () => {
  const store = storeOf();
  const names = Array.from({ length: 240 }, (_, index) => `s-${index}`);
  await apply(store, ...names.map((name) => [name, "{ ports: [{ port: 80 }] }"] as const));
  const addresses = names.flatMap((name) => specOf(store, name).clusterIP ?? []);
  assert.equal(new Set(addresses).size, 239);
  const last = addresses.map((address) => Number(address.split(".")[3]));
  assert.deepEqual([Math.min(...last), Math.max(...last)], [16, 254]);
});

for (const { name, spec, expected } of [
  { name: "an address of its own", spec: "{ clusterIP: 10.96.0.9, ports: [{ port: 80 }] }", expected: "10.96.0.9" },
  { name: "headless", spec: "{ clusterIP: None, ports: [{ port: 80 }] }", expected: "None" },
  { name: "a name elsewhere", spec: "{ type: ExternalName, externalName: a.example }", expected: undefined },
]) {
  test(`${name} stays`, async () => {
    const store = storeOf();
    const text = `{ apiVersion: v1, kind: Service, metadata: { name: a, namespace: shop }, spec: ${spec} }`;
    await store.applyAll(loadText(text, "service.yaml").resources);
    assert.equal(specOf(store, "a").clusterIP, expected);
  });
}

test("ports of nodes are given to who wants them, and stay", async () => {
  const store = storeOf();
  await apply(
    store,
    ["a", "{ type: NodePort, ports: [{ name: http, port: 80 }, { name: own, port: 81, nodePort: 30007 }] }"],
    ["b", "{ type: LoadBalancer, ports: [{ name: http, port: 80 }] }"],
    ["c", "{ ports: [{ port: 80 }] }"],
  );
  const ports = (name: string) => specOf(store, name).ports.map(({ nodePort }) => nodePort);
  const [first, second] = ports("a");
  assert.ok(first! >= 30_000 && first! < 32_768);
  assert.equal(second, 30_007);
  assert.notEqual(ports("b")[0], first);
  assert.deepEqual(ports("c"), [undefined]);
  const before = ports("b");
  await apply(store, ["b", "{ type: LoadBalancer, ports: [{ name: http, port: 80, targetPort: 8080 }] }"]);
  assert.deepEqual(ports("b"), before);
});

for (const text of ["10.96.0.0", "10.96.0.0/8", "10.96.0.0/30", "300.0.0.0/16", "fd00::/112"]) {
  test(`${text} is no range for Services`, () => assert.equal(parseClusterRange(text), undefined));
}
