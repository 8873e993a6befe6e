// Files below, applied resources above: what is seen, what survives a restart, and what an error in a file leaves
// standing.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { systemClock } from "@tulle/timing";
import { analyze, type MeshResource, parseResource, placeOf, StoreRefusal } from "@tulle/config";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { mountTinyDisk } from "../../../../tests/tools/tiny-disk.ts";
import { LayeredStore, type LayeredStoreOptions } from "./layered-store.ts";

interface World extends AsyncDisposable {
  readonly folder: string;
  open(options?: Partial<LayeredStoreOptions>): Promise<LayeredStore>;
  write(file: string, text: string): Promise<void>;
}

async function makeWorld(): Promise<World> {
  const root = await mkdtemp(path.join(tmpdir(), "layered-store-"));
  const opened: LayeredStore[] = [];
  return {
    folder: root,
    open: async (options = {}) => {
      const store = await LayeredStore.open({
        folder: root,
        stateDirectory: path.join(root, ".tulle"),
        fresh: false,
        runtimeOwner: "one",
        analyze,
        clock: systemClock,
        log: new Logging({ level: "off" }).logger("store"),
        ...options,
      });
      opened.push(store);
      return store;
    },
    write: (file, text) => writeFile(path.join(root, file), text),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(opened.map((store) => store.close()));
      await rm(root, { recursive: true, force: true });
    },
  };
}

function manifest(name: string, subset: string): string {
  const route = `http: [{ route: [{ destination: { host: catalog, subset: ${subset} } }] }]`;
  return `apiVersion: networking.tulle.io/v1
kind: VirtualService
metadata: { name: ${name}, namespace: shop }
spec: { hosts: [${name}], ${route} }
`;
}

function virtualService(name: string, subset: string): MeshResource {
  const { resource } = parseResource({
    apiVersion: "networking.tulle.io/v1",
    kind: "VirtualService",
    metadata: { name, namespace: "shop" },
    spec: { hosts: [name], http: [{ route: [{ destination: { host: "catalog", subset } }] }] },
  });
  assert.ok(resource);
  return resource;
}

function pod(name: string): MeshResource {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "shop" },
    spec: { containers: [{ name: "app" }] },
  };
}

/** Name → subset of every VirtualService. */
function subsets(store: LayeredStore): Record<string, string | undefined> {
  return Object.fromEntries(
    store
      .list("VirtualService")
      .map(({ metadata, spec }) => [metadata.name, spec.http?.[0]?.route?.[0]?.destination.subset]),
  );
}

const key = (name: string) => ({ kind: "VirtualService", namespace: "shop", name });

test("an applied resource beats its file, over a restart too, until it is deleted", async () => {
  await using world = await makeWorld();
  await world.write("a.yaml", manifest("a", "file"));
  const store = await world.open();
  assert.deepEqual(subsets(store), { a: "file" });
  const { outcome } = await store.apply(virtualService("a", "applied"));
  assert.equal(outcome, "configured");
  await store.apply(virtualService("b", "applied"));
  assert.deepEqual(subsets(store), { a: "applied", b: "applied" });
  await store.close();
  const again = await world.open();
  assert.deepEqual(subsets(again), { a: "applied", b: "applied" });
  await again.delete(key("a"));
  await again.delete(key("b"));
  assert.deepEqual(subsets(again), { a: "file" });
  assert.deepEqual(subsets(await world.open()), { a: "file" });
});

test("applying what the file says gives the object back to its file", async () => {
  await using world = await makeWorld();
  await world.write("a.yaml", manifest("a", "file"));
  const store = await world.open();
  await store.apply(virtualService("a", "applied"));
  await store.apply(virtualService("a", "file"));
  await world.write("a.yaml", manifest("a", "edited"));
  await waitFor(() => subsets(store)["a"] === "edited", { what: "the edited file" });
});

test("a folder that cannot be read leaves everything standing, with a finding", async () => {
  await using world = await makeWorld();
  const folder = path.join(world.folder, "manifests");
  const elsewhere = path.join(world.folder, "elsewhere");
  await mkdir(folder);
  await world.write("manifests/a.yaml", manifest("a", "file"));
  const store = await world.open({ folder });
  await rename(folder, elsewhere);
  await world.write("elsewhere/b.yaml", manifest("b", "file"));
  const isTold = (): boolean => store.findings().some(({ place }) => place?.file === folder);
  await waitFor(isTold, { what: "the finding" });
  assert.deepEqual(subsets(store), { a: "file" });
});

test("what could not be written is not applied, now or later", async () => {
  await using world = await makeWorld();
  await world.write("a.yaml", manifest("a", "file"));
  const store = await world.open();
  // Where the folder of applied resources would be made.
  await world.write(".tulle/applied", "in the way");
  await assert.rejects(store.apply(virtualService("a", "applied")), { code: "EEXIST" });
  assert.deepEqual(subsets(store), { a: "file" });
  await world.write("a.yaml", manifest("a", "edited"));
  await waitFor(() => subsets(store)["a"] !== "file", { what: "the edited file" });
  assert.deepEqual(subsets(store), { a: "edited" });
});

test("what only a file defines is not deleted here", async () => {
  await using world = await makeWorld();
  await world.write("a.yaml", manifest("a", "file"));
  const store = await world.open();
  await assert.rejects(store.delete(key("a")), (error: Error) => {
    assert.ok(error instanceof StoreRefusal);
    assert.equal(error.reason, "conflict");
    assert.match(error.message, /a\.yaml:1: remove it there/);
    return true;
  });
  assert.equal(await store.delete(key("nobody")), undefined);
});

test("fresh forgets what was applied, once for each owner", async () => {
  await using world = await makeWorld();
  const store = await world.open();
  await store.apply(virtualService("a", "applied"));
  const fresh = await world.open({ fresh: true, runtimeOwner: "two" });
  assert.deepEqual(subsets(fresh), {});
  await fresh.apply(virtualService("b", "applied"));
  // The same owner starts it again with the same arguments.
  assert.deepEqual(subsets(await world.open({ fresh: true, runtimeOwner: "two" })), { b: "applied" });
  assert.deepEqual(subsets(await world.open({ fresh: true, runtimeOwner: "" })), {});
});

test("pods live as long as their owner", async () => {
  await using world = await makeWorld();
  const store = await world.open();
  await store.apply(pod("catalog-1"));
  assert.equal((await world.open()).list("Pod").length, 1);
  assert.equal((await world.open({ runtimeOwner: "two" })).list("Pod").length, 0);
});

test("a pod that runs is only marked as deleted, until whoever runs it says that it is gone", async () => {
  await using world = await makeWorld();
  const running = (uid: string): MeshResource =>
    ({
      ...pod("a"),
      metadata: { name: "a", namespace: "shop", uid },
      spec: { containers: [{ name: "app" }], nodeName: "here" },
    }) as MeshResource;
  const podKey = { kind: "Pod", namespace: "shop", name: "a" };
  const mark = (store: LayeredStore) => store.get("Pod", "shop", "a")?.metadata.deletionTimestamp;
  const store = await world.open();
  await store.apply(running("1"));
  await store.delete(podKey);
  const since = mark(store);
  assert.ok(since !== undefined);
  // Its state is written meanwhile, by somebody who has not heard yet, and the control plane starts again.
  await Promise.all([store.apply(running("1")), store.delete(podKey), store.apply(running("1"))]);
  assert.equal(mark(store), since);
  assert.equal(mark(await world.open()), since);
  // Another one of that name is not it.
  await store.apply(running("2"));
  assert.equal(mark(store), undefined);
  await store.delete(podKey, { atOnce: true });
  assert.equal(store.get("Pod", "shop", "a"), undefined);
});

test("a pod that nobody runs just goes", async () => {
  await using world = await makeWorld();
  for (const [owner, nodeName] of [
    ["one", undefined],
    ["", "here"],
  ] as const) {
    const store = await world.open({ runtimeOwner: owner });
    await store.apply({ ...pod("a"), spec: { containers: [{ name: "app" }], nodeName } } as MeshResource);
    await store.delete({ kind: "Pod", namespace: "shop", name: "a" });
    assert.equal(store.get("Pod", "shop", "a"), undefined);
  }
});

test("files are read again when they change", async () => {
  await using world = await makeWorld();
  await world.write("a.yaml", manifest("a", "one"));
  const store = await world.open();
  await world.write("b.yaml", manifest("b", "one"));
  await waitFor(() => subsets(store)["b"] === "one", { what: "a new file" });
  await world.write("a.yaml", `${manifest("a", "two")}---\n${manifest("c", "one")}`);
  await waitFor(() => subsets(store)["c"] === "one", { what: "a changed file" });
  assert.deepEqual(subsets(store), { a: "two", b: "one", c: "one" });
  await rm(path.join(world.folder, "b.yaml"));
  await waitFor(() => !("b" in subsets(store)), { what: "a file that is gone" });
});

const errors: readonly { name: string; text: string }[] = [
  { name: "a resource that is wrong", text: manifest("a", "two").replace("hosts", "hostz") },
  { name: "a file that is no YAML", text: "kind: [" },
];

for (const { name, text } of errors) {
  test(`${name} leaves its last good version standing`, async () => {
    await using world = await makeWorld();
    await world.write("a.yaml", manifest("a", "one"));
    const store = await world.open();
    await world.write("a.yaml", text);
    await world.write("b.yaml", manifest("b", "new"));
    await waitFor(() => subsets(store)["b"] === "new", { what: "the good file" });
    await waitFor(() => store.findings().some(({ severity }) => severity === "error"), { what: "the finding" });
    assert.deepEqual(subsets(store), { a: "one", b: "new" });
    const finding = store.findings().find(({ severity }) => severity === "error");
    assert.match(finding?.place?.file ?? "", /a\.yaml$/);
    await world.write("a.yaml", manifest("a", "repaired"));
    await waitFor(() => subsets(store)["a"] === "repaired", { what: "the repaired file" });
    assert.deepEqual(
      store.findings().filter(({ severity, code }) => severity === "error" && code !== "IST0101"),
      [],
    );
  });
}

test("places survive a restart", async () => {
  await using world = await makeWorld();
  const store = await world.open();
  const resource = virtualService("a", "applied");
  const { attachPlaces } = await import("@tulle/config");
  await store.apply(attachPlaces(resource, { file: "mine.yaml", at: { "/spec": [7, 3] } }));
  const again = await world.open();
  const found = again.get("VirtualService", "shop", "a");
  assert.ok(found);
  assert.deepEqual(placeOf(found, ["spec"]), { file: "mine.yaml", line: 7, column: 3 });
});

test("who was first stays first over a restart", async () => {
  await using world = await makeWorld();
  const store = await world.open();
  for (const name of ["c", "a", "b", "d"]) await store.apply(virtualService(name, "one"));
  await store.delete({ kind: "VirtualService", namespace: "shop", name: "a" });
  await store.apply(virtualService("c", "two"));
  await store.apply(virtualService("a", "two"));
  const names = (of: LayeredStore): string[] => of.list("VirtualService").map(({ metadata }) => metadata.name);
  assert.deepEqual(names(store), ["c", "b", "d", "a"]);
  const again = await world.open();
  assert.deepEqual(names(again), ["c", "b", "d", "a"]);
  await again.apply(virtualService("aa", "one"));
  assert.deepEqual(names(await world.open()), ["c", "b", "d", "a", "aa"]);
});

test("a saved resource that was cut short is set aside with a finding, and the others are there", async () => {
  await using world = await makeWorld();
  const store = await world.open();
  for (const name of ["a", "b"]) await store.apply(virtualService(name, "one"));
  const applied = path.join(world.folder, ".tulle", "applied");
  const file = path.join(applied, "shop~a~VirtualService.json");
  const cut = (await readFile(file, "utf8")).slice(0, -20);
  await writeFile(file, cut);
  const again = await world.open();
  assert.deepEqual(subsets(again), { b: "one" });
  const told = (of: LayeredStore): readonly string[] =>
    of.findings().flatMap(({ message }) => (message.startsWith("the saved resource") ? [message] : []));
  assert.equal(told(again).length, 1);
  assert.match(told(again)[0]!, /cannot be read: .*; it was set aside as shop~a~VirtualService\.json\.refused$/);
  assert.equal(await readFile(`${file}.refused`, "utf8"), cut);
  assert.deepEqual(told(await world.open()), []);
});

test("pods and endpoints take effect on a full disk, what is applied does not", async () => {
  await using world = await makeWorld();
  const entries: LogEntry[] = [];
  const state = path.join(world.folder, ".tulle");
  await mkdir(state);
  await using disk = await mountTinyDisk(state, 64 * 1024);
  const log = new Logging({ sink: (entry) => entries.push(entry) }).logger("store");
  const store = await world.open({ log });
  await store.apply(pod("one"));
  disk.fill();
  for (const name of ["two", "three"]) await store.apply(pod(name));
  await store.delete({ kind: "Pod", namespace: "shop", name: "one" });
  assert.deepEqual(
    store.list("Pod").map(({ metadata }) => metadata.name),
    ["two", "three"],
  );
  disk.fill();
  await assert.rejects(store.apply(virtualService("a", "one")), { code: "ENOSPC" });
  assert.deepEqual(subsets(store), {});
  disk.free();
  await store.apply(pod("four"));
  await store.apply(virtualService("a", "one"));
  assert.deepEqual(subsets(store), { a: "one" });
  assert.deepEqual(
    entries.filter(({ message }) => message.startsWith("pods and endpoints")).map(({ level }) => level),
    ["error", "info"],
  );
});

test("no Service is given the address or the node port that another one has", async () => {
  await using world = await makeWorld();
  const ports = "ports: [{ port: 80, nodePort: 30080 }]";
  const head = "apiVersion: v1\nkind: Service\nmetadata: { name: catalog, namespace: shop }";
  await world.write("catalog.yaml", `${head}\nspec: { type: NodePort, ${ports} }\n`);
  const store = await world.open({ clusterRanges: ["10.96.0.0/16"] });
  const { clusterIP } = store.get("Service", "shop", "catalog")!.spec;
  assert.ok(clusterIP);
  const service = (name: string, namespace: string, spec: object): MeshResource => {
    const { resource, findings } = parseResource({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace },
      spec,
    });
    assert.ok(resource, JSON.stringify(findings));
    return resource;
  };
  const asked = { ports: [{ port: 80 }], clusterIP };
  const refusal = { reason: "conflict", message: `${clusterIP} is the Service shop/catalog's already` };
  await assert.rejects(store.apply(service("thief", "aaa", asked)), refusal);
  const onNodes = { type: "NodePort", ports: [{ port: 90, nodePort: 30_080 }] };
  await assert.rejects(store.apply(service("thief", "aaa", onNodes)), {
    message: "the node port 30080/TCP is the Service shop/catalog's already",
  });
  assert.equal(store.get("Service", "aaa", "thief"), undefined);
  // Itself, as it was read from here.
  await store.apply(service("catalog", "shop", asked));
  await store.apply(service("other", "aaa", { ports: [{ port: 80 }] }));
});
