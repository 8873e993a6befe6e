// The timeline of changes: what is told of one, what is not, and that it is bounded and outlives a restart.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MeshResource, StoreChange, StoreListener } from "@tulle/config";
import type { RecordedChange } from "@tulle/config/api";
import { maxChanges, parseRecordedChange, type SavedChanges, Timeline } from "./timeline.ts";

function stage(saved: ReadonlyMap<string, RecordedChange> = new Map()) {
  let listener: StoreListener = () => assert.fail("nobody watches");
  let written = saved;
  const kept: SavedChanges = { saved, save: (entries) => (written = entries) };
  const watch = (given: StoreListener) => {
    listener = given;
    return () => undefined;
  };
  const clock = { nowMs: () => Date.parse("2026-11-24T18:00:00Z") };
  const timeline = new Timeline({ store: { watch }, findings: () => [], kept, clock });
  const tell = (...changes: readonly Omit<StoreChange, "resourceVersion">[]): void =>
    listener(changes.map((change) => ({ ...change, resourceVersion: 1 })));
  return { timeline, tell, written: () => written };
}

const resource = (kind: string, more: object, name = "a"): MeshResource =>
  ({ apiVersion: "v1", kind, metadata: { name, namespace: "shop" }, ...more }) as unknown as MeshResource;
const rule = (weight: number, more: object = {}): MeshResource =>
  resource("VirtualService", { spec: { http: [{ route: [{ weight }], ...more }] } });

test("a change tells its fields", () => {
  const { timeline, tell } = stage();
  tell({ type: "modified", previous: rule(90), resource: rule(10, { timeout: "1s" }) });
  const [change] = timeline.since(0);
  assert.deepEqual(change, {
    id: 1,
    time: "2026-11-24T18:00:00.000Z",
    kind: "VirtualService",
    namespace: "shop",
    name: "a",
    type: "modified",
    fields: [
      { path: "spec.http[0].route[0].weight", before: "90", after: "10" },
      { path: "spec.http[0].timeout", after: '"1s"' },
    ],
    moreFields: 0,
    findings: [],
  });
  assert.deepEqual(timeline.since(Date.parse("2026-11-24T18:00:01Z")), []);
});

test("no secret is told", () => {
  const { timeline, tell } = stage();
  tell({
    type: "modified",
    previous: resource("Secret", { data: { key: "b25l" } }),
    resource: resource("Secret", { data: { key: "dHdv" } }),
  });
  const headers = (authorization: string): object => ({ headers: { request: { set: { authorization } } } });
  tell({ type: "modified", previous: rule(1, headers("Basic one")), resource: rule(1, headers("Basic two")) });
  tell({ type: "modified", previous: rule(1), resource: rule(1, headers("Basic three")) });
  assert.doesNotMatch(JSON.stringify(timeline.since(0)), /b25l|dHdv|Basic/);
  assert.equal(timeline.since(0).length, 3);
});

test("what the platform writes is counted, and an end of a status is no change", () => {
  const { timeline, tell } = stage();
  tell({ type: "added", resource: resource("Pod", {}) }, { type: "added", resource: resource("EndpointSlice", {}) });
  const next = { ...rule(1), metadata: { name: "a", namespace: "shop", resourceVersion: "2" }, status: { a: 1 } };
  tell({ type: "modified", previous: rule(1), resource: next as unknown as MeshResource });
  assert.deepEqual([timeline.since(0), timeline.platformChanges], [[], 2]);
});

test("the newest are kept, across a restart", () => {
  const first = stage();
  for (let weight = 0; weight < maxChanges + 3; weight += 1) first.tell({ type: "added", resource: rule(weight) });
  assert.equal(first.written().size, maxChanges);
  const saved = new Map(
    [...first.written()].map(([key, value]) => [key, parseRecordedChange(JSON.parse(JSON.stringify(value)))!]),
  );
  const second = stage(saved);
  second.tell({ type: "deleted", resource: rule(1) });
  assert.deepEqual(
    second.timeline
      .since(0)
      .slice(-2)
      .map(({ id, type }) => [id, type]),
    [
      [maxChanges + 3, "added"],
      [maxChanges + 4, "deleted"],
    ],
  );
  assert.equal(parseRecordedChange({ id: "1" }), undefined);
});
