// When a status is written, over an API server that takes each.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import { waitFor } from "../../../../tests/tools/processes.ts";
import type { FollowedObject } from "../store/kubernetes-store.ts";
import { scriptedApiServer } from "../testing/scripted-api-server.ts";
import { StatusWriter, type StatusWriterOptions } from "./status-writer.ts";

const accepted = { type: "Accepted", status: "True", reason: "Accepted", message: "", observedGeneration: 1 };
const status = { observedGeneration: 1, conditions: [{ ...accepted, lastTransitionTime: "1970-01-01T00:00:10Z" }] };
const rule = (version: string, more: Partial<FollowedObject> = {}): FollowedObject => ({
  key: { kind: "VirtualService", namespace: "shop", name: "web" },
  apiVersion: "networking.tulle.io/v1",
  version,
  generation: 1,
  status: undefined,
  isRead: true,
  isShadowed: false,
  ...more,
});

function writerOver(t: TestContext, client: StatusWriterOptions["client"], objects: () => readonly FollowedObject[]) {
  const clock = new ManualClock();
  const writer = new StatusWriter({
    client,
    store: { watch: () => () => undefined, objects },
    known: {
      findings: () => [],
      setAside: () => [],
      changes: () => new Map(),
      refusals: () => [],
      more: () => ({}),
    },
    replicas: undefined,
    leadership: { isLeader: true, follow: () => () => undefined },
    clock,
    log: new Logging({ sink: () => undefined }).logger("kubernetes"),
  });
  t.after(() => writer.close());
  return {
    look: async (): Promise<void> => {
      await waitFor(() => clock.waiting.length === 1, { what: "the next look" });
      await clock.next();
      await nextTurn();
      await waitFor(() => clock.waiting.length === 1, { what: "its end" });
    },
  };
}

test("a status is written once, until another version shows that it is not there", async (t) => {
  const server = await scriptedApiServer(t, [{ lines: [{ status }] }]);
  let objects = [rule("1")];
  const writer = writerOver(t, server.client(), () => objects);
  const written: number[] = [];
  for (const next of [
    rule("1"),
    // The watch has not told of it yet.
    rule("1"),
    rule("2", { status }),
    // Somebody has taken it back.
    rule("3"),
    rule("4", { status }),
    // Removed, and made anew.
    rule("9"),
  ]) {
    objects = [next];
    await writer.look();
    written.push(server.asked.length);
  }
  assert.deepEqual(written, [1, 1, 1, 2, 2, 3]);
});

test("of Istio's groups what Istio says stays, but for what it cannot know", async (t) => {
  const server = await scriptedApiServer(t, [{ lines: [{ status }] }]);
  const ofIstio = { apiVersion: "networking.istio.io/v1", key: rule("1").key };
  let objects = [rule("1", { ...ofIstio, status: { conditions: [{ type: "Reconciled", status: "True" }] } })];
  const writer = writerOver(t, server.client(), () => objects);
  const written: number[] = [];
  for (const more of [{}, { isShadowed: true }, { version: "2", status: undefined }]) {
    objects = objects.map((each) => ({ ...each, isShadowed: false, ...more }));
    await writer.look();
    written.push(server.asked.length);
  }
  assert.deepEqual(written, [0, 1, 2]);
});
