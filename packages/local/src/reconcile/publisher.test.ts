// What is written to the store, and when it is written again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, type ApiClient, type EndpointSlice, keyOf, keyText, type MeshResource } from "@tulle/config";
import type { ResourceKey } from "@tulle/config";
import { waitUntil } from "../process/wait-until.ts";
import { type HeardStore, Publisher } from "./publisher.ts";

function slice(name: string, address = "127.0.0.2"): EndpointSlice {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name, namespace: "shop" },
    addressType: "IPv4",
    ports: [],
    endpoints: [{ addresses: [address] }],
  };
}

/** A store that notes what the publisher writes, and fails as often as it is told to. */
class TestStore {
  readonly calls: string[] = [];
  readonly publisher: Publisher;
  readonly failures: unknown[] = [];
  /** What is said to the watch; behind the store until `hear`. */
  #heard: HeardStore = { resourceVersion: 0, ours: [], get: () => undefined };
  readonly #rows = new Map<string, MeshResource>();
  #version = 0;
  #failing: { readonly error: Error; count: number } | undefined;

  constructor() {
    const api = {
      apply: async (resource: MeshResource) => {
        this.#note(`apply ${resource.metadata.name}`);
        return { outcome: "created", resource: this.put(resource), findings: [] };
      },
      delete: async (key: ResourceKey) => {
        this.#note(`delete ${key.name}`);
        this.remove(key);
        return undefined;
      },
    };
    this.publisher = new Publisher(
      api as unknown as ApiClient,
      () => this.#heard,
      (error) => this.failures.push(error),
    );
  }

  #note(text: string): void {
    if (this.#failing !== undefined && this.#failing.count > 0) {
      this.#failing.count -= 1;
      throw this.#failing.error;
    }
    this.calls.push(text);
  }

  failNext(count: number, error = new Error("not reachable")): void {
    this.#failing = { error, count };
  }

  put(resource: MeshResource): MeshResource {
    this.#version += 1;
    const stored = { ...resource, metadata: { ...resource.metadata, resourceVersion: String(this.#version) } };
    this.#rows.set(keyText(keyOf(resource)), stored);
    return stored;
  }

  remove(key: ResourceKey): void {
    if (this.#rows.delete(keyText(key))) this.#version += 1;
  }

  /** The watch has told of everything so far. */
  hear(): void {
    const rows = new Map(this.#rows);
    this.#heard = {
      resourceVersion: this.#version,
      ours: [...rows.values()],
      get: (key) => rows.get(keyText(key)),
    };
  }

  rows(): Readonly<Record<string, string | undefined>> {
    const rows = [...this.#rows.values()] as EndpointSlice[];
    return Object.fromEntries(rows.map((row) => [row.metadata.name, row.endpoints[0]?.addresses[0]]));
  }

  /** Publishes, as a pass does after each change, until nothing is left to write. */
  async publish(...resources: readonly EndpointSlice[]): Promise<void> {
    this.publisher.publish(resources);
    await waitUntil(() => this.publisher.isSettled, { timeoutMs: 60_000, what: () => "everything to be written" });
  }
}

test("only what has changed is written, and what is no longer wanted is deleted", async () => {
  const store = new TestStore();
  await store.publish(slice("a"), slice("b"));
  await store.publish(slice("a"), slice("b", "127.0.0.3"));
  await store.publish(slice("b", "127.0.0.3"));
  assert.deepEqual(store.calls, ["apply a", "apply b", "apply b", "delete a"]);
});

test("states that were overtaken are not written", async () => {
  const store = new TestStore();
  store.publisher.publish([slice("a", "127.0.0.3")]);
  store.publisher.publish([slice("a", "127.0.0.4"), slice("c")]);
  await store.publish(slice("a", "127.0.0.5"));
  assert.deepEqual(store.calls, ["apply a"]);
});

test("a write that fails is told once and done again", async () => {
  const store = new TestStore();
  store.failNext(2);
  await store.publish(slice("a"));
  assert.deepEqual(store.calls, ["apply a"]);
  assert.equal(store.failures.length, 1);
});

test("after the store was lost everything is written anew", async () => {
  const store = new TestStore();
  await store.publish(slice("a"));
  store.publisher.reset();
  await store.publish(slice("a"));
  assert.deepEqual(store.calls, ["apply a", "apply a"]);
});

test("what an earlier run left is deleted unless it is wanted", async () => {
  const store = new TestStore();
  store.put(slice("a", "127.0.0.9"));
  store.put(slice("old"));
  store.hear();
  await store.publish(slice("a"));
  assert.deepEqual(store.rows(), { a: "127.0.0.2" });
});

const others: readonly { readonly name: string; readonly change: (store: TestStore) => void }[] = [
  { name: "deletes it", change: (store) => store.remove(keyOf(slice("a"))) },
  { name: "writes over it", change: (store) => store.put(slice("a", "127.0.0.9")) },
  { name: "writes one that nobody runs", change: (store) => store.put(slice("ghost")) },
];
for (const { name, change } of others) {
  test(`the store holds again what is true when somebody else ${name}`, async () => {
    const store = new TestStore();
    await store.publish(slice("a"), slice("b"));
    store.hear();
    change(store);
    store.hear();
    await store.publish(slice("a"), slice("b"));
    assert.deepEqual(store.rows(), { a: "127.0.0.2", b: "127.0.0.2" });
    store.hear();
    const calls = store.calls.length;
    await store.publish(slice("a"), slice("b"));
    assert.equal(store.calls.length, calls, "nothing is left to write");
  });
}

test("a watch that is behind is no reason to write again", async () => {
  const store = new TestStore();
  await store.publish(slice("a"));
  await store.publish(slice("a"));
  store.hear();
  await store.publish();
  // It still shows what has been deleted.
  await store.publish();
  assert.deepEqual(store.calls, ["apply a", "delete a"]);
});

test("what was removed is removed again when somebody else writes it anew", async () => {
  const store = new TestStore();
  await store.publish(slice("a"));
  store.hear();
  await store.publish();
  store.put(slice("a"));
  store.hear();
  await store.publish();
  assert.deepEqual(store.rows(), {});
});

test("what a manifest says stays, and is told once", async () => {
  const store = new TestStore();
  store.put(slice("of the user"));
  store.hear();
  store.failNext(1, new ApiError(409, "it is defined in a.yaml:1"));
  await store.publish();
  await store.publish();
  assert.deepEqual(store.rows(), { "of the user": "127.0.0.2" });
  assert.equal(store.failures.length, 1);
});
