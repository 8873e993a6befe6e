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
    { client, analyze: () => [], clock: systemClock, log, withIstioGroups: false },
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
