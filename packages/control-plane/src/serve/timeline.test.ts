// The timeline of changes: what is told of one, what is not, who has it, and that it is bounded and outlives a restart.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Finding, MeshResource, StoreChange, StoreListener } from "@tulle/config";
import type { RecordedChange } from "@tulle/config/api";
import type { AdsConnection } from "@tulle/xds";
import type { MeshChange } from "./mesh-state.ts";
import type { ConnectedProxy, Pusher } from "./pusher.ts";
import type { PushFollower } from "./route-changes.ts";
import { maxNamed, maxSeen } from "./seen-configuration.ts";
import { maxChanges, parseSavedChange, type SavedChanges, Timeline } from "./timeline.ts";

type Saved = SavedChanges["saved"];

function stage(saved: Saved = new Map(), resources: readonly MeshResource[] = [], findings: readonly Finding[] = []) {
  let listener: StoreListener = () => assert.fail("nobody watches");
  let written = saved;
  const kept: SavedChanges = { saved, save: (entries) => (written = entries) };
  const watch = (given: StoreListener) => {
    listener = given;
    return () => undefined;
  };
  let nowMs = Date.parse("2026-11-24T18:00:00Z");
  const clock = { nowMs: () => nowMs };
  const proxies = new Proxies();
  const store = { watch, all: () => resources };
  const timeline = new Timeline({ ...proxies.stages, store, findings: () => findings, kept, clock });
  const tell = (...changes: readonly Omit<StoreChange, "resourceVersion">[]): void =>
    listener(changes.map((change) => ({ ...change, resourceVersion: 1 })));
  const pass = (ms: number): void => void (nowMs += ms);
  return { timeline, tell, pass, proxies, written: () => written };
}

/** The mesh and the proxies, as far as the timeline sees them. */
class Proxies {
  readonly #states = new Map<AdsConnection, ReturnType<Pusher["syncOf"]>>();
  #declare: (change: MeshChange) => void = () => assert.fail("nobody follows the mesh");
  #follower: PushFollower | undefined;
  isPending = false;
  readonly stages: Pick<ConstructorParameters<typeof Timeline>[0], "mesh" | "pusher">;

  constructor() {
    const { isPending, connected } = { isPending: () => this.isPending, connected: () => this.#states.keys() };
    this.stages = {
      mesh: {
        get isPending() {
          return isPending();
        },
        follow: (listener) => (this.#declare = listener),
      },
      pusher: {
        get connected() {
          return connected()
            .map((connection) => ({ connection }) as ConnectedProxy)
            .toArray();
        },
        syncOf: (connection) => this.#states.get(connection) ?? "gone",
        follow: (follower) => (this.#follower = follower),
      },
    };
  }

  connect(): AdsConnection {
    const connection = {} as AdsConnection;
    this.#states.set(connection, "inSync");
    return connection;
  }

  /** All wait for something, but for those. */
  declare(...untouched: readonly AdsConnection[]): void {
    this.isPending = false;
    for (const each of this.#states.keys()) if (!untouched.includes(each)) this.#states.set(each, "behind");
    this.#declare({ routing: true, endpoints: false, sinceMs: 0 });
  }

  reroute(connection: AdsConnection, ...virtualHosts: readonly string[]): void {
    this.#follower!.rerouted(connection, () => virtualHosts.map((virtualHost) => ({ virtualHost, after: "1" })));
  }

  answer(connection: AdsConnection, state: ReturnType<Pusher["syncOf"]>): void {
    if (state === "gone") this.#states.delete(connection);
    else this.#states.set(connection, state);
    this.#follower!.settled(connection);
  }
}

const resource = (kind: string, more: object, name = "a"): MeshResource =>
  ({ apiVersion: "v1", kind, metadata: { name, namespace: "shop" }, ...more }) as unknown as MeshResource;
const rule = (weight: number, more: object = {}): MeshResource =>
  resource("VirtualService", { spec: { http: [{ route: [{ weight }], ...more }] } });

const asRead = (written: Saved): Saved =>
  new Map([...written].map(([key, value]) => [key, parseSavedChange(JSON.parse(JSON.stringify(value)))!]));

test("a change tells its fields", () => {
  const { timeline, tell } = stage();
  tell({ type: "modified", previous: rule(90), resource: rule(10, { timeout: "1s" }), by: "ann (uid 1000)" });
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
    by: "ann (uid 1000)",
    batch: 1,
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
  assert.equal(first.written().size, maxChanges + 1);
  const second = stage(asRead(first.written()), [rule(maxChanges + 2)]);
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
  assert.equal(parseSavedChange({ id: "1" }), undefined);
});

test("what was changed while the control plane was away is one entry", () => {
  const first = stage(new Map(), [rule(1), resource("Service", { spec: { a: 1, b: 2 } }, "same")]);
  first.tell(
    { type: "added", resource: resource("Service", { spec: {} }, "gone") },
    { type: "added", resource: resource("Secret", { data: { key: "b25l" } }, "hidden") },
    { type: "added", resource: resource("Pod", {}, "of-the-platform") },
  );
  const other = { kind: "Service", namespace: "shop", name: "new" };
  const second = stage(
    asRead(first.written()),
    [
      rule(2),
      resource("Service", { spec: { b: 2, a: 1 } }, "same"),
      resource("Secret", { data: { key: "dHdv" } }, "hidden"),
      resource("Service", {}, "new"),
      resource("Pod", {}, "another"),
    ],
    [
      { code: "IST0101", severity: "error", message: "", resource: other },
      { code: "IST0102", severity: "error", message: "", resource: { ...other, name: "same" } },
      { code: "TUL0002", severity: "error", message: "a file that cannot be read" },
    ],
  );
  const [, , away] = second.timeline.since(0);
  assert.deepEqual(away, {
    id: 3,
    time: "2026-11-24T18:00:00.000Z",
    kind: "",
    namespace: "",
    name: "",
    type: "away",
    away: {
      named: [
        { type: "added", ...other },
        { type: "modified", kind: "VirtualService", namespace: "shop", name: "a" },
        { type: "modified", kind: "Secret", namespace: "shop", name: "hidden" },
        { type: "deleted", kind: "Service", namespace: "shop", name: "gone" },
      ],
      more: 0,
    },
    fields: [],
    moreFields: 0,
    findings: ["IST0101", "TUL0002"],
  });
  assert.doesNotMatch(JSON.stringify([...second.written()]), /b25l|dHdv/);
  // Known by then: a further start tells nothing, and numbers go on.
  const third = stage(asRead(second.written()), [
    rule(2),
    ...["same", "new"].map((name) => resource("Service", name === "same" ? { spec: { a: 1, b: 2 } } : {}, name)),
    resource("Secret", { data: { key: "dHdv" } }, "hidden"),
  ]);
  third.tell({ type: "added", resource: resource("Service", {}, "later") });
  assert.deepEqual(
    third.timeline.since(0).map(({ id, type, batch }) => [id, type, batch]),
    [
      [1, "added", 1],
      [2, "added", 1],
      [3, "away", undefined],
      [4, "added", 2],
    ],
  );
});

test("what was changed while the control plane was away is bounded", () => {
  const services = (count: number): readonly MeshResource[] =>
    Array.from({ length: count }, (_, index) => resource("Service", { spec: {} }, `s${index}`));
  const first = stage(new Map(), services(1));
  const [away] = stage(asRead(first.written()), services(maxNamed + 3)).timeline.since(0);
  assert.deepEqual([away?.away?.named.length, away?.away?.more], [maxNamed, 2]);
  // Of more than are remembered nothing is told, and nothing wrong.
  const many = services(maxSeen + 1);
  const written = asRead(stage(new Map(), many).written());
  assert.deepEqual(stage(written, many).timeline.since(0), []);
  const [gone] = stage(written, many.slice(1)).timeline.since(0);
  const named = [{ type: "deleted", kind: "Service", namespace: "shop", name: "s0" }];
  assert.deepEqual(gone?.away, { named, more: 0 });
});

test("a first start has nothing to compare with", () => {
  assert.deepEqual(stage(new Map(), [rule(1)]).timeline.since(0), []);
});

test("it is told which proxies have a change, and how long that took", () => {
  const { timeline, tell, pass, proxies, written } = stage();
  const [one, two, third, last] = [proxies.connect(), proxies.connect(), proxies.connect(), proxies.connect()];
  const writtenChange = (id: string) => written().get(id) as RecordedChange;
  const soFar = () => timeline.since(0).map(({ batch, proxies: sync }) => [batch, sync]);
  const change = (weight: number): void => tell({ type: "modified", previous: rule(0), resource: rule(weight) });
  change(1);
  assert.deepEqual(soFar(), [[1, undefined]], "nobody has to hear of it");
  proxies.isPending = true;
  tell({ type: "added", resource: rule(2, {}) }, { type: "added", resource: resource("VirtualService", {}, "b") });
  const none = { connected: 4, inSync: 0, refusing: 0 };
  assert.deepEqual(soFar().slice(1), [
    [2, none],
    [2, none],
  ]);
  // What they answer to an earlier push says nothing of this one.
  proxies.answer(one, "inSync");
  pass(50);
  change(3);
  assert.deepEqual(soFar().at(1), [2, none]);
  proxies.declare(last);
  assert.deepEqual(soFar().at(-1), [3, { connected: 4, inSync: 1, refusing: 0 }]);
  pass(50);
  proxies.answer(one, "inSync");
  proxies.answer(two, "refusing");
  // It gets something else before it has answered.
  proxies.answer(third, "behind");
  assert.deepEqual(soFar().at(-1), [3, { connected: 4, inSync: 2, refusing: 1 }]);
  assert.deepEqual(writtenChange("2").proxies, none);
  pass(20);
  proxies.answer(third, "gone");
  const all = { connected: 3, inSync: 2, refusing: 1 };
  assert.deepEqual(soFar().slice(1), [
    [2, { ...all, tookMs: 120 }],
    [2, { ...all, tookMs: 120 }],
    [3, { ...all, tookMs: 70 }],
  ]);
  assert.deepEqual(writtenChange("4").proxies, { ...all, tookMs: 70 });
  // What becomes of routes, told once, and not told of proxies that have it.
  const [again, other] = [proxies.connect(), proxies.connect()];
  proxies.isPending = true;
  change(5);
  proxies.declare();
  proxies.reroute(again, "a:80", "b:80");
  proxies.reroute(other, "a:80", ...Array.from({ length: 200 }, (_, index) => `${index}:80`));
  proxies.answer(again, "inSync");
  proxies.reroute(again, "late:80");
  proxies.answer(other, "inSync");
  const { revisions = [], moreRevisions } = timeline.since(0).at(-1)!.proxies!;
  const named = revisions.map(({ virtualHost }) => virtualHost);
  assert.deepEqual([named.slice(0, 3), named.length, moreRevisions], [["a:80", "b:80", "0:80"], 8, 92]);
  for (const each of [again, other]) proxies.answer(each, "gone");
  // Without any proxy, and with a clock that was set back.
  for (const each of [one, two, last]) proxies.answer(each, "gone");
  proxies.isPending = true;
  change(4);
  pass(-1000);
  proxies.declare();
  assert.deepEqual(soFar().at(-1), [5, { connected: 0, inSync: 0, refusing: 0, tookMs: 0 }]);
});

test("what a control plane that ended has not counted to the end is told so by the next", () => {
  const first = stage();
  first.proxies.connect();
  first.proxies.isPending = true;
  first.tell({ type: "added", resource: rule(1) });
  const second = stage(first.written());
  const none = { connected: 1, inSync: 0, refusing: 0 };
  assert.deepEqual(first.timeline.since(0)[0]?.proxies, none);
  assert.deepEqual(second.timeline.since(0)[0]?.proxies, { ...none, isCutShort: true });
  const [saved] = first.written().values();
  assert.deepEqual(parseSavedChange(saved), saved);
  for (const damage of [{ proxies: null }, { proxies: { connected: "1" } }, { batch: "2" }])
    assert.equal(parseSavedChange({ ...saved, ...damage }), undefined);
});
