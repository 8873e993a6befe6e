// What the store does over an API server that answers by a script; what it does over a real one is tested there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import { inTime } from "../../../../tests/tools/processes.ts";
import { scriptedApiServer } from "../testing/scripted-api-server.ts";
import { KubernetesStore } from "./kubernetes-store.ts";

const listEnd = {
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: "5", annotations: { "k8s.io/initial-events-end": "true" } } },
};

test("whoever is told to end follows the cluster for as long as it serves", async (t) => {
  const server = await scriptedApiServer(t, [{ lines: [listEnd], isOpen: true }]);
  const client = server.client();
  const log = new Logging({ sink: () => undefined }).logger("kubernetes");
  const givenUp = new AbortController();
  const opening = KubernetesStore.open(
    { client, revision: "default", analyze: () => [], clock: systemClock, log, withIstioGroups: false },
    givenUp.signal,
  );
  const store = await inTime(opening, "the lists");
  t.after(() => store.close());
  const { promise, resolve } = Promise.withResolvers<void>();
  store.watch((changes) => changes.length > 0 && resolve());
  givenUp.abort();
  server.say("/api/v1/namespaces", { type: "ADDED", object: { metadata: { name: "shop", resourceVersion: "6" } } });
  await inTime(promise, "the namespace");
  assert.ok(store.get("Namespace", "", "shop"));
});

test("what bears another revision's name is that revision's alone", async (t) => {
  const server = await scriptedApiServer(t, [{ lines: [listEnd], isOpen: true }]);
  const client = server.client();
  const log = new Logging({ sink: () => undefined }).logger("kubernetes");
  const store = await inTime(
    KubernetesStore.open({
      client,
      revision: "canary",
      analyze: () => [],
      clock: systemClock,
      log,
      withIstioGroups: true,
    }),
    "the lists",
  );
  t.after(() => store.close());
  let version = 6;
  const tell = async (group: string, name: string, labels: object, type = "MODIFIED"): Promise<void> => {
    version += 1;
    const object = {
      apiVersion: `networking.${group}/v1`,
      kind: "VirtualService",
      metadata: { name, namespace: "shop", labels, resourceVersion: String(version) },
      spec: { hosts: ["a"], http: [{ route: [{ destination: { host: "a" } }] }] },
    };
    server.say(`/apis/networking.${group}/v1/virtualservices`, { type, object });
    // One that everybody reads comes after it.
    const marker = `marker-${version}`;
    const { promise, resolve } = Promise.withResolvers<void>();
    const unwatch = store.watch(
      (changes) => changes.some(({ resource }) => resource.metadata.name === marker) && resolve(),
    );
    const metadata = { ...object.metadata, name: marker, labels: {} };
    server.say(`/apis/networking.${group}/v1/virtualservices`, { type: "ADDED", object: { ...object, metadata } });
    await inTime(promise, marker);
    unwatch();
  };
  const isRead = (name: string): boolean => store.get("VirtualService", "shop", name) !== undefined;
  for (const group of ["tulle.io", "istio.io"]) {
    await tell(group, "own", { "istio.io/rev": "canary" }, "ADDED");
    await tell(group, "others", { "istio.io/rev": "stable" }, "ADDED");
    await tell(group, "ours-first", { "istio.io/rev": "stable", "tulle.io/rev": "canary" }, "ADDED");
    assert.deepEqual(["own", "others", "ours-first"].map(isRead), [true, false, true], group);
    await tell(group, "others", {});
    await tell(group, "own", { "istio.io/rev": "stable" });
    await tell(group, "ours-first", { "tulle.io/rev": "stable" });
    assert.deepEqual(["own", "others", "ours-first"].map(isRead), [false, true, false], group);
    assert.ok(!store.objects().some(({ key }) => key.name === "own"));
    await tell(group, "others", { "tulle.io/rev": "stable" });
  }
});

test("it counts each object that cannot be read, from before somebody asks, too", async (t) => {
  const server = await scriptedApiServer(t, [{ lines: [listEnd], isOpen: true }]);
  const log = new Logging({ sink: () => undefined }).logger("kubernetes");
  const options = { client: server.client(), revision: "default", analyze: () => [], clock: systemClock, log };
  const store = await inTime(KubernetesStore.open({ ...options, withIstioGroups: false }), "the lists");
  t.after(() => store.close());
  const http = [{ route: [{ destination: { host: "a" } }] }];
  let [version, count, hear] = [6, 0, (): void => undefined];
  const tell = (name: string, hosts: unknown): void => {
    version += 1;
    const metadata = { name, namespace: "shop", resourceVersion: String(version) };
    const object = { apiVersion: "networking.tulle.io/v1", kind: "VirtualService", metadata, spec: { hosts, http } };
    server.say("/apis/networking.tulle.io/v1/virtualservices", { type: "ADDED", object });
  };
  const known = Promise.withResolvers<void>();
  store.watch(() => known.resolve());
  tell("bad", 1);
  tell("good", ["a"]);
  await inTime(known.promise, "one that can be read");
  store.followUnread((times) => {
    count += times;
    hear();
  });
  assert.equal(count, 1);
  const again = Promise.withResolvers<void>();
  hear = again.resolve;
  tell("bad", 2);
  await inTime(again.promise, "another one");
  assert.equal(count, 2);
});
