// When keys are fetched, how long they serve, and what is told of those that are not to be had; on a clock that the
// test moves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import type { MeshRequestAuthentication } from "../snapshot/mesh-snapshot.ts";
import type { FetchedJwks } from "./fetch-jwks.ts";
import { defaultJwksTimes, JwksKeys, maxKeySets } from "./jwks-keys.ts";

const policy = (...urls: readonly string[]): MeshRequestAuthentication => ({
  name: "policy",
  namespace: "shop",
  matchLabels: {},
  jwtRules: urls.map((url) => ({ issuer: "issuer", location: { url, isDiscovery: false } })),
});

interface Bench {
  readonly clock: ManualClock;
  readonly jwks: JwksKeys;
  readonly asked: { readonly url: string; readonly timeoutMs: number }[];
  answer: FetchedJwks;
  changes: number;
}

function makeBench(): Bench {
  const clock = new ManualClock();
  const asked: Bench["asked"] = [];
  const bench: Bench = {
    clock,
    asked,
    answer: { jwks: "one" },
    changes: 0,
    jwks: new JwksKeys({
      clock,
      log: new Logging({ sink: () => undefined }).logger("test"),
      random: () => 0.5,
      fetch: (location, timeoutMs) => {
        asked.push({ url: location.url, timeoutMs });
        return Promise.resolve(bench.answer);
      },
    }),
  };
  bench.jwks.follow(() => (bench.changes += 1));
  return bench;
}

test("keys are fetched at once, and again while they serve", async () => {
  const bench = makeBench();
  bench.jwks.want([policy("https://a", "https://a")]);
  assert.equal(bench.jwks.keys.size, 0, "nothing waits for them");
  await bench.clock.next();
  assert.deepEqual([...bench.jwks.keys], [["https://a", "one"]]);
  assert.deepEqual(bench.asked, [{ url: "https://a", timeoutMs: 5000 }]);
  assert.deepEqual(bench.clock.waiting, [defaultJwksTimes.refreshMs]);
  await bench.clock.next();
  assert.equal(bench.changes, 1, "the same keys are no change");
  bench.answer = { jwks: "two" };
  await bench.clock.next();
  assert.equal(bench.changes, 2);
  assert.equal(bench.jwks.keys.get("https://a"), "two");
});

test("a failed fetch is tried again soon, then less often, and the last keys go on up to their limit", async () => {
  const bench = makeBench();
  bench.jwks.want([policy("https://a")]);
  await bench.clock.next();
  bench.answer = { problem: "down" };
  const waits: number[] = [];
  for (let failures = 0; failures < 10; failures += 1) {
    await bench.clock.next();
    waits.push(...bench.clock.waiting);
  }
  assert.deepEqual(waits, [250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  assert.equal(bench.jwks.keys.get("https://a"), "one");
  assert.match(bench.jwks.findings()[0]!.message, /from https:\/\/a \(down\); the last ones go on$/);
  while (bench.clock.nowMs() < defaultJwksTimes.keepMs) {
    assert.equal(bench.changes, 1);
    await bench.clock.next();
  }
  assert.equal(bench.changes, 2);
  assert.equal(bench.jwks.keys.size, 0);
  bench.answer = { jwks: "one" };
  await bench.clock.next();
  assert.equal(bench.changes, 3);
  assert.deepEqual(bench.jwks.findings(), []);
});

test("who may answer now is asked at once, and once", async () => {
  const bench = makeBench();
  bench.answer = { problem: "down" };
  bench.jwks.want([policy("https://a", "https://b")]);
  for (let count = 0; count < 6; count += 1) await bench.clock.next();
  const asked = bench.asked.length;
  bench.answer = { jwks: "one" };
  bench.jwks.askAgain((url) => url === "https://a");
  bench.jwks.askAgain((url) => url === "https://a");
  assert.equal(bench.clock.waiting.length, 2);
  await bench.clock.next();
  assert.deepEqual(
    bench.asked.slice(asked).map(({ url }) => url),
    ["https://a"],
  );
  assert.deepEqual([...bench.jwks.keys], [["https://a", "one"]]);
  bench.jwks.askAgain(() => true);
  await bench.clock.next();
  assert.equal(bench.jwks.keys.size, 2);
});

test("the first keys that do not come are told of", async () => {
  const bench = makeBench();
  bench.answer = { problem: "answered with status 404" };
  bench.jwks.want([policy("https://a")]);
  for (let failures = 1; failures < 5; failures += 1) {
    await bench.clock.next();
    assert.deepEqual(bench.jwks.findings(), [], "its issuer may be starting");
  }
  await bench.clock.next();
  assert.deepEqual(bench.jwks.findings(), [
    {
      code: "TUL0007",
      severity: "warning",
      message:
        "the keys of issuer could not be fetched from https://a (answered with status 404); its tokens are refused until they are there",
      resource: { kind: "RequestAuthentication", namespace: "shop", name: "policy" },
      path: "spec.jwtRules[0]",
    },
  ]);
  assert.equal(bench.changes, 0);
});

test("keys that no policy names are forgotten, also while they are on their way", async () => {
  const bench = makeBench();
  bench.jwks.want([policy("https://a")]);
  await bench.clock.next();
  bench.jwks.want([]);
  assert.equal(bench.jwks.keys.size, 0);
  assert.deepEqual(bench.clock.waiting, []);
  bench.jwks.want([policy("https://a")]);
  const fetched = bench.clock.next();
  bench.jwks.close();
  await fetched;
  assert.equal(bench.jwks.keys.size, 0);
  assert.deepEqual(bench.clock.waiting, []);
});

test("a policy may shorten a fetch, and lengthen it up to a limit", async () => {
  const bench = makeBench();
  const location = { url: "https://a", isDiscovery: false };
  for (const fetchTimeoutMs of [100, 3_600_000]) {
    bench.jwks.want([{ ...policy(), jwtRules: [{ issuer: "issuer", location, fetchTimeoutMs }] }]);
    await bench.clock.next();
  }
  assert.deepEqual(
    bench.asked.map(({ timeoutMs }) => timeoutMs),
    [100, 30_000],
  );
});

test("keys of an earlier run serve at once, up to their limit, where a policy still names them", async () => {
  const clock = new ManualClock();
  const saved = new Map(
    [
      ["https://a", 0],
      ["https://old", -defaultJwksTimes.keepMs],
      ["https://unnamed", 0],
    ].map(([url, fetchedAtMs]) => [url as string, { jwks: "saved", fetchedAtMs: fetchedAtMs as number }]),
  );
  const written: (readonly [string, number])[][] = [];
  let answer: FetchedJwks = { problem: "down" };
  const jwks = new JwksKeys({
    clock,
    log: new Logging({ sink: () => undefined }).logger("test"),
    random: () => 0.5,
    saved,
    save: (keys) => written.push([...keys].map(([url, { fetchedAtMs }]) => [url, fetchedAtMs] as const)),
    fetch: () => Promise.resolve(answer),
  });
  jwks.want([policy("https://a", "https://old")]);
  assert.deepEqual([...jwks.keys], [["https://a", "saved"]]);
  await clock.next();
  await clock.next();
  assert.deepEqual([...jwks.keys], [["https://a", "saved"]]);
  answer = { jwks: "new" };
  await clock.next();
  assert.deepEqual([...jwks.keys], [["https://a", "new"]]);
  assert.deepEqual(written, [[["https://a", clock.nowMs()]]]);
});

test("there is a limit to the number of key sets", async () => {
  const bench = makeBench();
  bench.jwks.want([policy(...Array.from({ length: maxKeySets + 2 }, (_, index) => `https://${index}`))]);
  while (bench.asked.length < maxKeySets) await bench.clock.next();
  assert.equal(bench.jwks.keys.size, maxKeySets);
  assert.ok(!bench.clock.waiting.includes(0));
});
