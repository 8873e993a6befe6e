// Which addresses and node ports Services get that name none, and what is said of those that cannot be given.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, type MemoryStore, type Service } from "@tulle/config";
import { storeWithPlaces } from "./service-places.ts";

const ranges = ["10.96.0.0/24", "fd96::/112"];
const newStore = (): MemoryStore => storeWithPlaces(ranges, () => []);

type Written = readonly [name: string, spec: string];

const manifest = ([name, spec]: Written): string =>
  `{ apiVersion: v1, kind: Service, metadata: { name: ${name}, namespace: shop }, spec: ${spec} }`;

/** All together, as a folder is read. */
async function apply(store: MemoryStore, ...written: readonly Written[]): Promise<void> {
  const { resources, findings } = loadText(written.map(manifest).join("\n---\n"), "services.yaml");
  assert.deepEqual(findings, []);
  await store.applyAll(resources);
}

const specOf = (store: MemoryStore, name: string): Service["spec"] => store.get("Service", "shop", name)!.spec;
const addressesOf = (store: MemoryStore, ...names: readonly string[]): readonly (string | undefined)[] =>
  names.map((name) => specOf(store, name).clusterIP);
const said = (store: MemoryStore): readonly string[] =>
  store.findings().map(({ code, resource, path, message, place }) => {
    const where = `${resource!.name} ${path} (${place?.file}:${place?.line})`;
    return `${code} ${where}: ${message}`;
  });
const plain = "{ ports: [{ port: 80 }] }";
const asking = (clusterIP: string): string => `{ clusterIP: ${clusterIP}, ports: [{ port: 80 }] }`;

test("a Service has an address of the range, which stays when it changes and after a restart", async () => {
  const store = newStore();
  await apply(store, ["catalog", plain]);
  const { clusterIP, clusterIPs, ipFamilies } = specOf(store, "catalog");
  assert.match(clusterIP!, /^10\.96\.0\.\d+$/);
  assert.deepEqual([clusterIPs, ipFamilies], [[clusterIP], ["IPv4"]]);
  await apply(store, ["catalog", "{ ports: [{ port: 81 }] }"]);
  assert.equal(specOf(store, "catalog").clusterIP, clusterIP);
  const other = newStore();
  await apply(other, ["orders", plain], ["catalog", plain]);
  assert.equal(specOf(other, "catalog").clusterIP, clusterIP);
});

test("one that prefers both families has an address of each", async () => {
  const store = newStore();
  await apply(store, ["catalog", "{ ipFamilyPolicy: PreferDualStack, ports: [{ port: 80 }] }"]);
  const { clusterIPs, ipFamilies } = specOf(store, "catalog");
  assert.match(clusterIPs!.join(" "), /^10\.96\.0\.\d+ fd96::[0-9a-f]+$/);
  assert.deepEqual(ipFamilies, ["IPv4", "IPv6"]);
});

test("what a Service names itself is nobody else's, wherever it stands in the folder", async () => {
  const alone = newStore();
  await apply(alone, ["catalog", plain]);
  const [found] = addressesOf(alone, "catalog");
  const store = newStore();
  await apply(store, ["catalog", plain], ["other", asking(found!)]);
  const [catalog, other] = addressesOf(store, "catalog", "other");
  assert.equal(other, found);
  assert.match(catalog!, /^10\.96\.0\.\d+$/);
  assert.notEqual(catalog, found);
  assert.deepEqual(said(store), []);
});

for (const { name, spec, expected } of [
  { name: "an address of its own", spec: asking("10.96.0.9"), expected: "10.96.0.9" },
  { name: "headless", spec: asking("None"), expected: "None" },
  { name: "a name elsewhere", spec: "{ type: ExternalName, externalName: a.example }", expected: undefined },
]) {
  test(`${name} stays`, async () => {
    const store = newStore();
    await store.applyAll(loadText(manifest(["a", spec]), "service.yaml").resources);
    assert.equal(specOf(store, "a").clusterIP, expected);
  });
}

test("an address that another one has is a finding, until that one is gone", async () => {
  const store = newStore();
  await apply(store, ["first", asking("10.96.0.9")]);
  await apply(store, ["filler", plain], ["second", asking("10.96.0.9")]);
  assert.deepEqual(addressesOf(store, "first", "second"), ["10.96.0.9", undefined]);
  const sentence = "10.96.0.9 is the Service shop/first's already";
  assert.deepEqual(said(store), [`TUL0017 second spec.clusterIP (services.yaml:3): ${sentence}`]);
  const { findings } = await store.apply(specified(store, "second"));
  assert.deepEqual(
    findings.map(({ message }) => message),
    [sentence],
  );
  await store.delete({ kind: "Service", namespace: "shop", name: "first" });
  await changesSettled(store);
  assert.deepEqual(addressesOf(store, "second"), ["10.96.0.9"]);
  assert.deepEqual(said(store), []);
});

test("one that is gone does not come back for what it wanted", async () => {
  const store = newStore();
  await apply(store, ["first", asking("10.96.0.9")], ["second", asking("10.96.0.9")]);
  for (const name of ["second", "first"]) await store.delete({ kind: "Service", namespace: "shop", name });
  await changesSettled(store);
  assert.deepEqual(store.list("Service"), []);
  assert.deepEqual(said(store), []);
});

test("an address outside of the ranges is not given", async () => {
  const store = newStore();
  await apply(store, ["catalog", asking("192.0.2.1")]);
  assert.deepEqual(addressesOf(store, "catalog"), [undefined]);
  const sentence = "192.0.2.1 is in none of the ranges of Services (10.96.0.0/24, fd96::/112)";
  assert.deepEqual(said(store), [`TUL0017 catalog spec.clusterIP (services.yaml:1): ${sentence}`]);
  await apply(store, ["catalog", asking("10.96.0.9")]);
  assert.deepEqual(said(store), []);
});

test("ports of nodes are given to who wants them, and stay", async () => {
  const store = newStore();
  await apply(
    store,
    ["a", "{ type: NodePort, ports: [{ name: http, port: 80 }, { name: own, port: 81, nodePort: 30007 }] }"],
    ["b", "{ type: LoadBalancer, ports: [{ name: http, port: 80 }] }"],
    ["c", plain],
    ["d", "{ type: NodePort, ports: [{ port: 80, nodePort: 80 }] }"],
  );
  const ports = (name: string) => specOf(store, name).ports.map(({ nodePort }) => nodePort);
  const [first, second] = ports("a");
  assert.ok(first! >= 30_000 && first! < 32_768);
  assert.equal(second, 30_007);
  assert.notEqual(ports("b")[0], first);
  assert.deepEqual([ports("c"), ports("d")], [[undefined], [undefined]]);
  const outside = "TUL0017 d spec.ports[0].nodePort (services.yaml:7): 80 is no node port: they go from 30000 to 32767";
  assert.deepEqual(said(store), [outside]);
  const before = ports("b");
  await apply(store, ["b", "{ type: LoadBalancer, ports: [{ name: http, port: 80, targetPort: 8080 }] }"]);
  assert.deepEqual(ports("b"), before);
});

/** As its user wrote it. */
function specified(store: MemoryStore, name: string): Service {
  const stored = store.get("Service", "shop", name)!;
  return { ...stored, spec: { ...stored.spec, clusterIP: "10.96.0.9" } };
}

/** What a change brings about has been told, too. */
async function changesSettled(store: MemoryStore): Promise<void> {
  let version: number;
  do {
    version = store.resourceVersion;
    await store.applyAll([]);
  } while (store.resourceVersion !== version);
}
