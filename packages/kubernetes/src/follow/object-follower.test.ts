// What a follower makes of all that an API server may do: pages, bookmarks, versions that are forgotten, streams that
// break. The scripts are what real ones were seen to send.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import { inTime, waitFor } from "../../../../tests/tools/processes.ts";
import { type AskedFor, type ScriptedAnswer, scriptedApiServer } from "../testing/scripted-api-server.ts";
import { type FollowOptions, ObjectFollower } from "./object-follower.ts";

const object = (name: string, resourceVersion: string, more: object = {}) => ({
  metadata: { name, namespace: "shop", resourceVersion, ...more },
});
const event = (type: string, name: string, version: string) => ({ type, object: object(name, version) });
const listEnd = (version: string) => ({
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: version, annotations: { "k8s.io/initial-events-end": "true" } } },
});
const status = (code: number, reason: string, message = reason) => ({ kind: "Status", code, reason, message });
const noInitialEvents: ScriptedAnswer = {
  status: 422,
  lines: [status(422, "Invalid", "sendInitialEvents: Forbidden")],
};
const silent: ScriptedAnswer = { isOpen: true };

type Script = readonly (ScriptedAnswer | ((asked: AskedFor) => ScriptedAnswer))[];

async function follow(t: TestContext, script: Script, more: Pick<FollowOptions, "otherVersions"> = {}) {
  const server = await scriptedApiServer(t, script);
  const clock = new ManualClock();
  const told: string[] = [];
  const logged: string[] = [];
  const follower = new ObjectFollower({
    client: server.client(),
    path: "/api/v1/services",
    apiVersion: "v1",
    kind: "Service",
    clock,
    random: () => 0.5,
    log: new Logging({ sink: ({ message }) => void logged.push(message) }).logger("kubernetes"),
    onList: (objects) => told.push(`all: ${objects.map(({ metadata }) => metadata.name).join(" ")}`),
    onChange: (type, { metadata }) => told.push(`${type} ${metadata.name}`),
    ...more,
  });
  t.after(() => follower.close());
  const started = follower.start();
  started.catch(() => undefined);
  const until = (count: number) =>
    waitFor(() => told.length >= count, { what: `${count} to be told`, details: () => told.join("\n") });
  const asked = (count: number) => waitFor(() => server.asked.length >= count, { what: `${count} requests` });
  return { server, clock, told, logged, started, until, asked };
}

test("the list comes as the first events of a watch, and changes after it", async (t) => {
  const lines = [event("ADDED", "b", "2"), event("ADDED", "a", "1"), listEnd("5"), event("MODIFIED", "a", "6")];
  const { server, told, started, until } = await follow(t, [{ lines, isOpen: true }]);
  await inTime(started, "the list");
  await until(2);
  assert.deepEqual(told, ["all: a b", "MODIFIED a"]);
  const { query, path } = server.asked[0]!;
  assert.equal(path, "/api/v1/services");
  assert.deepEqual(
    ["watch", "sendInitialEvents", "resourceVersionMatch", "allowWatchBookmarks"].map((name) => query.get(name)),
    ["true", "true", "NotOlderThan", "true"],
  );
});

test("the oldest object comes first, whatever the server's order", async (t) => {
  const old = { type: "ADDED", object: object("z", "9", { creationTimestamp: "2026-01-01T00:00:00Z" }) };
  const young = { type: "ADDED", object: object("a", "8", { creationTimestamp: "2026-02-01T00:00:00Z" }) };
  const { told, until } = await follow(t, [{ lines: [young, old, listEnd("9")], isOpen: true }]);
  await until(1);
  assert.deepEqual(told, ["all: z a"]);
});

test("a server that knows no initial events is asked for pages", async (t) => {
  const { server, told, until, asked } = await follow(t, [
    noInitialEvents,
    { lines: [{ metadata: { resourceVersion: "7", continue: "more" }, items: [object("a", "1")] }] },
    { lines: [{ metadata: { resourceVersion: "7", continue: "" }, items: [object("b", "2")] }] },
    { lines: [event("DELETED", "a", "8")], isOpen: true },
  ]);
  await until(2);
  assert.deepEqual(told, ["all: a b", "DELETED a"]);
  await asked(4);
  assert.equal(server.asked[2]!.query.get("continue"), "more");
  assert.equal(server.asked[3]!.query.get("resourceVersion"), "7");
});

test("a list that breaks off between two pages is read from its first one again", async (t) => {
  const page = (name: string, next: string) => ({
    lines: [{ metadata: { resourceVersion: "7", continue: next }, items: [object(name, "1")] }],
  });
  const { server, clock, told, until, asked } = await follow(t, [
    noInitialEvents,
    page("a", "more"),
    { status: 500, lines: [status(500, "InternalError")] },
    page("a", "more"),
    page("b", ""),
    silent,
  ]);
  await asked(3);
  await waitFor(() => clock.waiting.includes(600), { what: "a wait" });
  await clock.next();
  await until(1);
  assert.deepEqual(told, ["all: a b"]);
  assert.equal(server.asked[3]!.query.get("watch"), null);
});

for (const [name, ending] of [
  ["an event", { type: "ERROR", object: status(410, "Expired", "too old resource version") }],
  ["an answer", undefined],
] as const) {
  test(`a version that is forgotten, by ${name}: everything is listed again`, async (t) => {
    const { clock, told, until, asked } = await follow(t, [
      { lines: [event("ADDED", "a", "1"), listEnd("5"), ...(ending === undefined ? [] : [ending])] },
      ...(ending === undefined ? [{ status: 410, lines: [status(410, "Expired")] }] : []),
      { lines: [event("ADDED", "b", "9"), listEnd("9")], isOpen: true },
    ]);
    await until(1);
    await asked(ending === undefined ? 2 : 1);
    await waitFor(() => clock.waiting.includes(400), { what: "a wait before it lists again" });
    await clock.next();
    await until(2);
    assert.deepEqual(told, ["all: a", "all: b"]);
  });
}

test("a stream that is cut in the middle of a line: the next one goes on behind the last whole one", async (t) => {
  const { server, clock, told, until, asked } = await follow(t, [
    { lines: [listEnd("5"), event("ADDED", "a", "6"), '{"type":"ADDED","object":{"metada'], isCut: true },
    { lines: [event("ADDED", "b", "7")], isOpen: true },
  ]);
  await until(2);
  // Not the limit to the silence, which waits from the start.
  await waitFor(() => clock.waiting.includes(600), { what: "a wait" });
  clock.pass(30_000);
  await asked(2);
  await until(3);
  assert.equal(server.asked[1]!.query.get("resourceVersion"), "6");
  assert.deepEqual(told, ["all: ", "ADDED a", "ADDED b"]);
});

test("a bookmark moves the version, so that a quiet kind is not listed again", async (t) => {
  const bookmark = { type: "BOOKMARK", object: { metadata: { resourceVersion: "99" } } };
  const { server, told, asked } = await follow(t, [{ lines: [listEnd("5"), bookmark] }, silent]);
  await asked(2);
  assert.equal(server.asked[1]!.query.get("resourceVersion"), "99");
  assert.deepEqual(told, ["all: "]);
});

test("a stream that says nothing is left, and the next one loses nothing", async (t) => {
  const { server, clock, asked, until } = await follow(t, [{ lines: [listEnd("5")], isOpen: true }, silent]);
  await until(1);
  await waitFor(() => clock.waiting.includes(150_000), { what: "a limit to the silence" });
  clock.pass(150_000);
  await asked(2);
  assert.equal(server.asked[1]!.query.get("resourceVersion"), "5");
});

test("a busy server is left alone for as long as it says, and the state stays", async (t) => {
  const { clock, told, logged, until, asked } = await follow(t, [
    { lines: [event("ADDED", "a", "1"), listEnd("5")] },
    { status: 429, headers: { "retry-after": "40" }, lines: [status(429, "TooManyRequests", "too many requests")] },
    { lines: [event("ADDED", "b", "6")], isOpen: true },
  ]);
  await asked(2);
  await waitFor(() => clock.waiting.includes(40_000), { what: "a wait of 40 s" });
  assert.match(logged.join("\n"), /cannot be followed, and is tried again: too many requests/);
  clock.pass(40_000);
  await until(2);
  assert.deepEqual(told, ["all: a", "ADDED b"]);
  assert.match(logged.join("\n"), /is followed again/);
});

test("watches that end as they began are asked for more and more seldom", async (t) => {
  const { server, clock, asked } = await follow(t, [{ lines: [listEnd("5")] }, {}]);
  const waits: number[] = [];
  for (let count = 2; count < 8; count += 1) {
    await asked(count);
    await waitFor(() => clock.waiting.length === 1, { what: "a wait" });
    waits.push(clock.waiting[0]!);
    await clock.next();
  }
  assert.deepEqual(waits, [600, 1200, 2400, 4800, 9600, 19_200]);
  assert.equal(server.asked.length <= 8, true);
});

test("a quiet kind comes back from a second gap as soon as from the first", async (t) => {
  const away: ScriptedAnswer = { status: 503, lines: [status(503, "ServiceUnavailable")] };
  const bookmark = { type: "BOOKMARK", object: { metadata: { resourceVersion: "9" } } };
  const { clock, asked } = await follow(t, [
    { lines: [listEnd("5")] },
    away,
    away,
    { lines: [bookmark] },
    away,
    silent,
  ]);
  for (const [count, wait] of [
    [2, 600],
    [3, 1200],
    [5, 600],
  ] as const) {
    await asked(count);
    await waitFor(() => clock.waiting.includes(wait), {
      what: `a wait of ${wait}`,
      details: () => clock.waiting.join(" "),
    });
    await clock.next();
  }
});

test("what this account may not see is said, with what to do", async (t) => {
  const refusal = status(403, "Forbidden", "services is forbidden: User cannot list");
  const { clock, logged, asked } = await follow(t, [{ status: 403, lines: [refusal] }]);
  await asked(1);
  await waitFor(() => clock.waiting.length > 0, { what: "a wait" });
  assert.match(
    logged.join("\n"),
    /\/api\/v1\/services cannot be followed.*User cannot list; grant list and watch of it/,
  );
});

test("a kind that is not served is empty, and looked for again; one that goes missing is believed at the second look", async (t) => {
  const missing: ScriptedAnswer = { status: 404, lines: [status(404, "NotFound")] };
  const { clock, told, started, until, asked } = await follow(t, [
    missing,
    { lines: [event("ADDED", "a", "1"), listEnd("5")] },
    missing,
    missing,
    silent,
  ]);
  await inTime(started, "the empty list");
  assert.deepEqual(told, ["all: "]);
  await waitFor(() => clock.waiting.includes(1500), { what: "a wait" });
  clock.pass(1500);
  await until(2);
  await asked(3);
  await waitFor(() => clock.waiting.includes(1500), { what: "a wait" });
  assert.deepEqual(told, ["all: ", "all: a"]);
  clock.pass(1500);
  await until(3);
  assert.deepEqual(told, ["all: ", "all: a", "all: "]);
});

test("a kind that is served in an older version alone is followed in that one", async (t) => {
  const missing: ScriptedAnswer = { status: 404, lines: [status(404, "NotFound")] };
  const older = { path: "/api/v1beta1/services", apiVersion: "v1beta1" };
  const { server, clock, told, until, asked } = await follow(
    t,
    [missing, { lines: [event("ADDED", "a", "1"), listEnd("5")] }, silent],
    { otherVersions: [older] },
  );
  await waitFor(() => clock.waiting.length > 0, { what: "a wait of no time" });
  await clock.next();
  await until(1);
  await asked(3);
  assert.deepEqual(told, ["all: a"]);
  assert.deepEqual(
    server.asked.map(({ path }) => path),
    ["/api/v1/services", older.path, older.path],
  );
});
