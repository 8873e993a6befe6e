// ServiceEntries as services of the snapshot: their addresses, and which of several for a host a client sees.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, MemoryStore } from "@tulle/config";
import { seenBy } from "../scope/client.ts";
import { translateNames } from "../translate/translate-names.ts";
import { buildEndpoints } from "./build-endpoints.ts";
import { buildSnapshot } from "./build-snapshot.ts";
import type { MeshSnapshot } from "./mesh-snapshot.ts";

const entry = (name: string, spec: string, metadata = "namespace: shop"): string =>
  `{ apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: { name: ${name}, ${metadata} }, spec: { resolution: STATIC, ${spec} } }`;

async function storeOf(texts: readonly string[]): Promise<MemoryStore> {
  const { resources, findings } = loadText(texts.join("\n---\n"), "mesh.yaml");
  assert.deepEqual(
    findings.filter(({ severity }) => severity === "error"),
    [],
  );
  const store = new MemoryStore();
  await store.applyAll(resources);
  return store;
}

const snapshotOf = async (...texts: readonly string[]): Promise<MeshSnapshot> => buildSnapshot(await storeOf(texts));

test("every host without an address has one of its own, the same whatever comes after it", async () => {
  const entries = Array.from({ length: 2000 }, (_, index) => entry(`e${index}`, `hosts: [h${index}.example.com]`));
  const addressesOf = async (texts: readonly string[]): Promise<readonly string[]> =>
    (await snapshotOf(...texts)).services.map(({ addresses }) => addresses.join(" "));
  const all = await addressesOf(entries);
  assert.equal(new Set(all).size, all.length);
  for (const address of all) assert.match(address, /^240\.240\.\d+\.\d+ 2001:2::[1-9a-f][0-9a-f]{0,3}$/);
  assert.equal(
    all.some((address) => /^240\.240\.(0\.0|255\.255) /.test(address)),
    false,
  );
  assert.deepEqual(await addressesOf(entries.slice(0, 1000)), all.slice(0, 1000));
});

test("no host gets an address that is written somewhere, or where it asks for none", async () => {
  const [free] = (await snapshotOf(entry("a", "hosts: [a.example.com]"))).services;
  const optedOut = 'namespace: shop, labels: { networking.istio.io/enable-autoallocate-ip: "false" }';
  const { services } = await snapshotOf(
    entry("a", "hosts: [a.example.com]"),
    entry("b", `hosts: [b.example.com], addresses: [${free!.addresses[0]}, 10.0.0.0/8, "fd00::1/128"]`),
    entry("c", "hosts: ['*.example.com']"),
    entry("d", "hosts: [d.example.com]", optedOut),
  );
  const [first, ...others] = services.map(({ addresses }) => addresses);
  assert.equal(first!.length, 2);
  assert.notDeepEqual(first, free!.addresses);
  const text = free!.addresses[1]!.replace("::", ":0:0:0:0:0:").toUpperCase();
  const [beside] = (
    await snapshotOf(entry("a", "hosts: [a.example.com]"), entry("b", `hosts: [b.example.com], addresses: ["${text}"]`))
  ).services;
  assert.notDeepEqual(beside!.addresses, free!.addresses);
  assert.deepEqual(others, [[free!.addresses[0], "fd00::1"], [], []]);
});

test("of several entries for a host a client sees one: the nearest, then the oldest; a Service keeps its host", async () => {
  const at = (name: string, rest = ""): string => entry(name, `hosts: [a.example.com]${rest}`, `namespace: ${name}`);
  const snapshot = await snapshotOf(
    at("first"),
    at("second"),
    at("wide", ", exportTo: [shop, blog]"),
    at("blog", ", exportTo: ['.']"),
    at("hidden", ", exportTo: ['~']"),
    at("thief", ", exportTo: [second]"),
    "{ apiVersion: v1, kind: Service, metadata: { name: web, namespace: shop }, spec: { ports: [{ port: 80 }] } }",
    entry("taken", "hosts: [web.shop.svc.cluster.local]"),
  );
  const seen = (namespace: string): readonly string[] =>
    seenBy(snapshot, { namespace, selectors: [] }).services.map((each) => `${each.namespace} ${each.hostname}`);
  const web = "shop web.shop.svc.cluster.local";
  assert.deepEqual(seen("other"), [web, "first a.example.com"]);
  assert.deepEqual(seen("shop"), [web, "wide a.example.com"]);
  assert.deepEqual(seen("blog"), [web, "blog a.example.com"]);
  assert.deepEqual(seen("second"), [web, "second a.example.com"]);
});

test("names with an address are answered, others are the machine's business", async () => {
  const store = await storeOf([
    entry("a", "hosts: [a.example.com], addresses: [192.0.2.1], ports: [{ number: 90, name: sql, protocol: TCP }]"),
    entry("b", "hosts: ['*.example.com'], addresses: [192.0.2.2]"),
    entry("c", "hosts: [c.example.com], addresses: [10.0.0.0/8]"),
  ]);
  const snapshot = buildSnapshot(store);
  const { table } = translateNames(snapshot.services, buildEndpoints(store, snapshot), ["0.0.0.0"]);
  const rows = Object.entries(table).map(([name, { registry, namespace, ips, shortname, ports }]) => [
    name,
    registry,
    namespace,
    ips,
    shortname,
    ports.map((port) => [port.name, port.number]),
  ]);
  assert.deepEqual(rows, [["a.example.com", "External", "shop", ["192.0.2.1"], "", [["sql", 90]]]]);
});

test("a name has addresses of the asker's families, and is the machine's business without any", async () => {
  const store = await storeOf([
    entry("a", "hosts: [a.example.com], addresses: [192.0.2.1, 2001:db8::1]"),
    entry("b", "hosts: [b.example.com], addresses: [2001:db8::2]"),
  ]);
  const snapshot = buildSnapshot(store);
  const namesFor = (...families: readonly string[]) => {
    const { table } = translateNames(snapshot.services, buildEndpoints(store, snapshot), families);
    return Object.entries(table).map(([name, { ips }]) => `${name} ${ips.join(" ")}`);
  };
  assert.deepEqual(namesFor("0.0.0.0"), ["a.example.com 192.0.2.1"]);
  assert.deepEqual(namesFor("::"), ["a.example.com 2001:db8::1", "b.example.com 2001:db8::2"]);
  assert.deepEqual(namesFor("0.0.0.0", "::"), ["a.example.com 192.0.2.1 2001:db8::1", "b.example.com 2001:db8::2"]);
});
