/** The store in memory: versions, batches, history and findings. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { analyze } from "../analyzers/analyze.ts";
import { loadText } from "../load/load.ts";
import { MemoryStore } from "./memory-store.ts";
import { placeOf } from "../findings/places.ts";
import { keyOf } from "../kinds/resource.ts";
import type { MeshResource } from "../kinds/resource.ts";
import type { StoreChange } from "./store.ts";

const account = (name: string, labels: Readonly<Record<string, string>> = {}): MeshResource => ({
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { name, namespace: "shop", labels },
});

const brief = (changes: readonly StoreChange[]): readonly string[] =>
  changes.map(({ type, resource, resourceVersion }) => `${resourceVersion} ${type} ${resource.metadata.name}`);

test("each change gets the next version, an apply that changes nothing gets none", async () => {
  const store = new MemoryStore({ initialResourceVersion: 0 });
  const outcomes: string[] = [];
  for (const resource of [account("a"), account("b"), account("a"), account("a", { x: "1" })]) {
    outcomes.push((await store.apply(resource)).outcome);
  }
  assert.deepEqual(outcomes, ["created", "created", "unchanged", "configured"]);
  assert.equal(store.resourceVersion, 3);
  // The order is that of the first sight, whatever changed since.
  assert.deepEqual(
    store.list("ServiceAccount").map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`),
    ["a 3", "b 2"],
  );
  assert.equal(store.get("ServiceAccount", "shop", "a")?.metadata.labels?.["x"], "1");
  assert.equal(store.get("ServiceAccount", "default", "a"), undefined);
  assert.deepEqual(store.list("ServiceAccount", "default"), []);
  assert.deepEqual(store.list("Service"), []);
});

test("what `get` shows can be applied again without a change", async () => {
  const store = new MemoryStore({ initialResourceVersion: 0 });
  await store.apply(account("a"));
  assert.equal((await store.apply(store.get("ServiceAccount", "shop", "a")!)).outcome, "unchanged");
});

test("listeners get all changes of a turn as one batch, and know before apply resolves", async () => {
  const store = new MemoryStore({ initialResourceVersion: 0 });
  const batches: (readonly string[])[] = [];
  const unwatch = store.watch((changes) => batches.push(brief(changes)));
  await Promise.all([store.apply(account("a")), store.apply(account("b")), store.delete(keyOf(account("a")))]);
  assert.deepEqual(batches, [["1 added a", "2 added b", "3 deleted a"]]);
  await store.applyAll([account("c"), account("d")]);
  assert.deepEqual(batches[1], ["4 added c", "5 added d"]);
  unwatch();
  await store.apply(account("e"));
  assert.equal(batches.length, 2);
});

test("a change tells what was there before", async () => {
  const store = new MemoryStore({ initialResourceVersion: 0 });
  const changes: StoreChange[] = [];
  store.watch((batch) => changes.push(...batch));
  await store.apply(account("a"));
  await store.apply(account("a", { x: "1" }));
  await store.delete(keyOf(account("a")));
  assert.deepEqual(
    changes.map(({ previous }) => previous?.metadata.labels),
    [undefined, {}, { x: "1" }],
  );
  assert.equal(await store.delete(keyOf(account("a"))), undefined);
});

test("the history goes back a bounded way, and versions of another life are too old", async () => {
  const store = new MemoryStore({ initialResourceVersion: 100, historyChanges: 2 });
  for (const name of ["a", "b", "c", "d"]) await store.apply(account(name));
  assert.deepEqual(brief(store.changesSince(102) ?? []), ["103 added c", "104 added d"]);
  assert.deepEqual(store.changesSince(104), []);
  await store.apply(account("e"));
  const cases: readonly (readonly [version: number, known: boolean])[] = [
    [99, false], // before this store began
    [101, false], // cut off
    [103, true],
    [105, true],
    [106, false], // of a store that came further than this one
  ];
  for (const [version, known] of cases) assert.equal(store.changesSince(version) !== undefined, known, String(version));
});

test("a listener added by a listener hears of later changes only", async () => {
  const store = new MemoryStore({ initialResourceVersion: 0 });
  const late: (readonly string[])[] = [];
  const unwatch = store.watch(() => {
    unwatch();
    store.watch((changes) => late.push(brief(changes)));
  });
  await store.apply(account("a"));
  await store.apply(account("b"));
  assert.deepEqual(late, [["2 added b"]]);
});

test("findings are those of loading and of analysis as things stand", async () => {
  const store = new MemoryStore({ analyze, initialResourceVersion: 0 });
  const manifests = (file: string): readonly MeshResource[] =>
    loadText(
      "apiVersion: networking.tulle.io/v1\nkind: VirtualService\nmetadata: { name: a }\nspec: { hosts: [a], http: [{ route: [{ destination: { host: a } }] }] }\n",
      file,
    ).resources;
  const [resource] = manifests("a.yaml");
  const { findings } = await store.apply(resource!);
  assert.deepEqual(
    findings.map(({ code, place }) => `${code} ${place?.file}:${place?.line}`),
    ["IST0101 a.yaml:4"],
  );
  store.setLoadFindings([{ code: "TUL0002", severity: "error", message: "unreadable" }]);
  assert.deepEqual(
    store.findings().map(({ code }) => code),
    ["TUL0002", "IST0101"],
  );
  // The same resource from another file is no change, but its place is the newer one.
  const [moved] = manifests("b.yaml");
  assert.equal((await store.apply(moved!)).outcome, "unchanged");
  assert.equal(placeOf(store.get("VirtualService", "default", "a")!)?.file, "b.yaml");
  await store.apply({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "a", namespace: "default" },
    spec: { type: "ClusterIP", ports: [{ name: "http", port: 80, protocol: "TCP" }] },
  });
  assert.deepEqual(
    store.findings().map(({ code }) => code),
    ["TUL0002"],
  );
});
