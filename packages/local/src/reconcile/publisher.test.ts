// What is written to the store, and when it is written again.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiClient, EndpointSlice, MeshResource, ResourceKey } from "@tulle/config";
import { waitUntil } from "../process/wait-until.ts";
import { Publisher } from "./publisher.ts";

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

/** A store that notes what is written, and fails as often as it is told to. */
function store(): { api: ApiClient; calls: string[]; failNext: (count: number) => void } {
  const calls: string[] = [];
  let failures = 0;
  const call = (text: string): void => {
    if (failures > 0) {
      failures -= 1;
      throw new Error("not reachable");
    }
    calls.push(text);
  };
  const api = {
    apply: (resource: MeshResource) => {
      call(`apply ${resource.metadata.name}`);
      return Promise.resolve({ outcome: "created", resource, findings: [] });
    },
    delete: (key: ResourceKey) => {
      call(`delete ${key.name}`);
      return Promise.resolve(undefined);
    },
  };
  return { api: api as unknown as ApiClient, calls, failNext: (count) => (failures = count) };
}

function settled(publisher: Publisher): Promise<void> {
  return waitUntil(() => publisher.isSettled, { timeoutMs: 10_000, what: () => "everything to be written" });
}

function unexpected(error: unknown): void {
  throw new Error("a write failed", { cause: error });
}

test("only what has changed is written, and what is no longer wanted is deleted", async () => {
  const { api, calls } = store();
  const publisher = new Publisher(api, unexpected);
  publisher.publish([slice("a"), slice("b")]);
  await settled(publisher);
  publisher.publish([slice("a"), slice("b", "127.0.0.3")]);
  await settled(publisher);
  publisher.publish([slice("b", "127.0.0.3")]);
  await settled(publisher);
  assert.deepEqual(calls, ["apply a", "apply b", "apply b", "delete a"]);
});

test("states that were overtaken are not written", async () => {
  const { api, calls } = store();
  const publisher = new Publisher(api, unexpected);
  publisher.publish([slice("a", "127.0.0.3")]);
  publisher.publish([slice("a", "127.0.0.4"), slice("c")]);
  publisher.publish([slice("a", "127.0.0.5")]);
  await settled(publisher);
  assert.deepEqual(calls, ["apply a"]);
});

test("a write that fails is told once and done again", async () => {
  const { api, calls, failNext } = store();
  const failures: unknown[] = [];
  const publisher = new Publisher(api, (error) => failures.push(error));
  failNext(2);
  publisher.publish([slice("a")]);
  await settled(publisher);
  assert.deepEqual(calls, ["apply a"]);
  assert.equal(failures.length, 1);
});

test("after the store was lost everything is written anew", async () => {
  const { api, calls } = store();
  const publisher = new Publisher(api, unexpected);
  publisher.publish([slice("a")]);
  await settled(publisher);
  publisher.reset();
  await settled(publisher);
  assert.deepEqual(calls, ["apply a", "apply a"]);
});

test("what an earlier run left is deleted unless it is wanted", async () => {
  const { api, calls } = store();
  const publisher = new Publisher(api, unexpected);
  publisher.publish([slice("a")]);
  publisher.adopt([slice("a"), slice("old")]);
  await settled(publisher);
  assert.deepEqual(calls, ["apply a", "delete old"]);
});
