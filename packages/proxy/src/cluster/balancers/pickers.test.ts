// The balancers on a seeded random source: shares by weight, turns, and the choice of the least busy.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricRegistry } from "@tulle/telemetry";
import { Host } from "../cluster.ts";
import { makeClusterStats } from "../cluster-stats.ts";
import { HostSet, type MakePicker } from "../host-set.ts";
import { leastRequest, randomPick, roundRobin } from "./pickers.ts";

/** Park and Miller's generator: the same numbers in every run. */
function seeded(seed = 42): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 0x7fffffff;
    return state / 0x7fffffff;
  };
}

function hosts(...weights: number[]): Host[] {
  return weights.map(
    (weight, index) => new Host({ type: "ip", ip: `10.0.0.${index}`, port: 80 }, "", weight, {}, true),
  );
}

function counts(make: MakePicker, list: readonly Host[], picks: number): number[] {
  const picker = make(list);
  const seen = new Map(list.map((host) => [host, 0]));
  for (let count = 0; count < picks; count += 1) {
    const host = picker.pick()!;
    seen.set(host, seen.get(host)! + 1);
  }
  return [...seen.values()];
}

for (const { name, make, weights, picks, expected, tolerance } of [
  {
    name: "round robin, equal",
    make: roundRobin(seeded()),
    weights: [1, 1, 1],
    picks: 300,
    expected: [100, 100, 100],
    tolerance: 0,
  },
  {
    name: "round robin, weighted",
    make: roundRobin(seeded()),
    weights: [1, 2, 7],
    picks: 1000,
    expected: [100, 200, 700],
    tolerance: 1,
  },
  {
    name: "random ignores weights",
    make: randomPick(seeded()),
    weights: [1, 9],
    picks: 10_000,
    expected: [5000, 5000],
    tolerance: 200,
  },
  {
    name: "least request, idle",
    make: leastRequest(seeded(), 2, 1),
    weights: [1, 1],
    picks: 10_000,
    expected: [5000, 5000],
    tolerance: 200,
  },
  {
    name: "least request, weighted",
    make: leastRequest(seeded(), 2, 1),
    weights: [1, 3],
    picks: 1000,
    expected: [250, 750],
    tolerance: 1,
  },
]) {
  test(name, () => {
    const seen = counts(make, hosts(...weights), picks);
    for (const [index, count] of seen.entries()) {
      assert.ok(Math.abs(count - expected[index]!) <= tolerance, `${seen.join(", ")} for ${expected.join(", ")}`);
    }
  });
}

test("weighted turns are interleaved", () => {
  const picker = roundRobin(() => 0)(hosts(1, 1, 2));
  const order = Array.from({ length: 8 }, () => picker.pick()?.address).map((address) =>
    address?.type === "ip" ? address.ip.at(-1) : "",
  );
  assert.deepEqual(order, ["2", "0", "1", "2", "2", "0", "1", "2"]);
});

test("least request prefers the less busy of two", () => {
  const [idle, busy] = hosts(1, 1);
  busy!.activeRequests = 10;
  const seen = counts(leastRequest(seeded(), 2, 1), [idle!, busy!], 10_000);
  assert.ok(Math.abs(seen[0]! - 7500) < 250, seen.join(", "));
});

test("nobody to pick", () => {
  for (const make of [roundRobin(seeded()), randomPick(seeded()), leastRequest(seeded(), 2, 1)]) {
    assert.equal(make([]).pick(), undefined);
  }
});

test("a host that is to be avoided is taken when no other was found in time", () => {
  const set = new HostSet({
    makePicker: roundRobin(() => 0),
    panicThresholdPercent: 50,
    stats: makeClusterStats(new MetricRegistry(), "c"),
    random: () => 0,
    onDropped: () => {},
  });
  set.update(
    ["10.0.0.1", "10.0.0.2"].map((ip) => ({
      address: { type: "ip", ip, port: 80 },
      hostname: "",
      weight: 1,
      metadata: {},
      healthy: true,
      priority: 0,
    })),
  );
  const [first, second] = set.hosts;
  const avoidFirst = { shouldAvoid: (host: Host) => host === first, maxHostPicks: 3 };
  assert.equal(set.chooseHost(avoidFirst), second);
  assert.equal(set.chooseHost(avoidFirst), second);
  assert.equal(set.chooseHost({ shouldAvoid: () => true, maxHostPicks: 1 }), first);
  assert.ok(set.chooseHost({ shouldAvoid: () => true, maxHostPicks: 5 }));
});
