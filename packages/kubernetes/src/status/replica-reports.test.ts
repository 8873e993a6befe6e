// How the words of several replicas become one status. That they are written, and read by the one that leads, is tested
// on a cluster (tests/kubernetes/change.kubernetes.test.ts).
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { scriptedApiServer } from "../testing/scripted-api-server.ts";
import { ReplicaReports } from "./replica-reports.ts";

const text = "VirtualService shop/web";
const sync = (inSync: number, connected: number) => ({ inSync, connected, isDone: inSync === connected });

/** `data`: what stands there, by replica. */
async function reportsOf(t: TestContext, data: Readonly<Record<string, unknown>>, gone: readonly string[] = []) {
  const clock = new ManualClock();
  const written = Object.fromEntries(
    Object.entries(data).map(([name, rows]) => [name, typeof rows === "string" ? rows : JSON.stringify(rows)]),
  );
  const metadata = { name: "tulle-replicas", namespace: "tulle-system", resourceVersion: "3" };
  const listEnd = { resourceVersion: "5", annotations: { "k8s.io/initial-events-end": "true" } };
  const lines = [
    { type: "ADDED", object: { metadata, data: written } },
    { type: "BOOKMARK", object: { metadata: listEnd } },
  ];
  const server = await scriptedApiServer(t, [{ lines, isOpen: true }]);
  const reports = new ReplicaReports({
    client: server.client(),
    namespace: "tulle-system",
    own: "a",
    isAlive: (name) => !gone.includes(name),
    store: { watch: () => () => undefined, objects: () => [] },
    known: { changes: () => new Map(), refusals: () => [] },
    leadership: { isLeader: true, follow: () => () => undefined },
    clock,
    log: new Logging({ sink: () => undefined }).logger("kubernetes"),
  });
  t.after(() => reports.close());
  await waitFor(() => reports.refusalsOf(text).length > 0, { what: "what stands there" });
  return { reports, clock };
}

const refusals = ["web-1 refuses RDS 8080: no"];

test("proxies of all replicas count, and what each refuses", async (t) => {
  const { reports, clock } = await reportsOf(t, {
    a: { [text]: { generation: 2, sync: sync(9, 9) } },
    b: { [text]: { generation: 2, sync: sync(3, 4), refusals } },
    c: { [text]: { generation: 2, sync: sync(2, 2) } },
  });
  const own = { changedAtMs: clock.nowMs(), sync: sync(1, 1) };
  assert.deepEqual(reports.syncOf(text, 2, own), { connected: 7, inSync: 6, isDone: false });
  assert.deepEqual(reports.refusalsOf(text), refusals);
  assert.equal(reports.syncOf("VirtualService shop/other", 1, undefined), undefined);
});

test("a replica that has yet to tell of a change is waited for, and not for ever", async (t) => {
  const { reports, clock } = await reportsOf(t, {
    b: { [text]: { generation: 1, sync: sync(4, 4), refusals } },
    c: { [text]: { generation: 2 } },
  });
  const own = { changedAtMs: clock.nowMs(), sync: sync(1, 1) };
  assert.deepEqual(reports.syncOf(text, 2, own), { connected: 1, inSync: 1, isDone: false });
  assert.deepEqual(reports.syncOf(text, 2, { ...own, changedAtMs: clock.nowMs() - 20_000 })?.isDone, true);
});

test("replicas that have gone, and words that cannot be read, do not count", async (t) => {
  const { reports, clock } = await reportsOf(
    t,
    {
      b: { [text]: { generation: 1, sync: sync(4, 4), refusals } },
      c: "{",
      d: { [text]: { generation: 1, sync: sync(8, 9) } },
    },
    ["d"],
  );
  const own = { changedAtMs: clock.nowMs() - 20_000, sync: undefined };
  assert.deepEqual(reports.syncOf(text, 1, own), { connected: 4, inSync: 4, isDone: true });
});
