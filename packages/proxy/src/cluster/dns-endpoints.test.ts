// When names of clusters are asked for again, and what a start waits for; time is driven by hand.
import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { test } from "node:test";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { ManualClock } from "../testing/manual-clock.ts";
import { DnsEndpoints, type DnsEndpointsOptions } from "./dns-endpoints.ts";
import type { DnsAnswer } from "./dns-lookup.ts";
import type { DnsRefresh } from "./dns-refresh.ts";
import { makeDnsStats } from "./dns-stats.ts";

const refresh: DnsRefresh = {
  intervalMs: 60_000,
  respectsTtl: true,
  minIntervalMs: 0,
  jitterMs: 0,
  failure: { baseMs: 1000, maxMs: 3000 },
};
const silent = new Promise<never>(() => {});

function stage(answers: () => Promise<DnsAnswer>, more: Partial<DnsEndpointsOptions> = {}, names = ["a.example"]) {
  const clock = new ManualClock();
  const asked: string[] = [];
  const hosts: string[][] = [];
  const endpoints = names.map((dnsName) => ({
    dnsName,
    port: 80,
    hostname: dnsName,
    weight: 1,
    metadata: {},
    healthy: true,
    priority: 0,
    check: undefined,
  }));
  const source = new DnsEndpoints({
    endpoints,
    usesAllAddresses: true,
    holdsStartUp: true,
    lookup: (name) => {
      asked.push(name);
      return name === "silent.example" ? silent : answers();
    },
    family: "v4_only",
    refresh,
    stats: makeDnsStats(new MetricRegistry(), "c"),
    clock,
    random: () => 0.999,
    log: new Logging({ sink: () => {} }).logger("upstream"),
    ...more,
  });
  const start = (): Promise<void> =>
    source.start((found) => hosts.push(found.map(({ address }) => (address.type === "ip" ? address.ip : ""))));
  /** Whether another question came after so long, and none before. */
  const askedAfter = async (ms: number): Promise<boolean> => {
    const before = asked.length;
    clock.advance(ms - 1);
    const isEarly = asked.length > before;
    clock.advance(1);
    await setImmediate();
    return !isEarly && asked.length === before + 1;
  };
  return { source, start, hosts, asked, clock, askedAfter };
}

const answer = (ttlMs?: number): Promise<DnsAnswer> => Promise.resolve({ addresses: ["10.0.0.1"], ttlMs });
const rates: readonly { name: string; ttlMs?: number; refresh?: Partial<DnsRefresh>; expected: number }[] = [
  { name: "for its own time", ttlMs: 7000, expected: 7000 },
  { name: "for the rate without one", expected: 60_000 },
  { name: "for the rate where it is not to be kept", ttlMs: 0, expected: 60_000 },
  {
    name: "for the rate where its time is not asked for",
    ttlMs: 7000,
    refresh: { respectsTtl: false },
    expected: 60_000,
  },
  { name: "for the least time", ttlMs: 1000, refresh: { minIntervalMs: 5000 }, expected: 5000 },
  { name: "for a week at most", ttlMs: (2 ** 31 - 1) * 1000, expected: 604_800_000 },
  { name: "for the rate where its time is below zero", ttlMs: 2 ** 31 * 1000, expected: 60_000 },
  { name: "for a little longer", ttlMs: 7000, refresh: { jitterMs: 1000 }, expected: 7999 },
];
for (const { name, ttlMs, refresh: more = {}, expected } of rates) {
  test(`an answer holds ${name}`, async () => {
    const { start, source, askedAfter, hosts } = stage(() => answer(ttlMs), { refresh: { ...refresh, ...more } });
    await start();
    assert.ok(await askedAfter(expected));
    assert.ok(await askedAfter(expected));
    assert.deepEqual(hosts, [["10.0.0.1"]], "told once");
    source.stop();
    assert.equal(await askedAfter(expected), false);
  });
}

test("after failures the wait doubles up to its limit, and begins anew after an answer", async () => {
  let isFailing = true;
  const { start, source, askedAfter } = stage(() => (isFailing ? Promise.reject(new Error("down")) : answer(1000)));
  await start();
  for (const waitMs of [999, 1998, 2997, 2997]) assert.ok(await askedAfter(waitMs), String(waitMs));
  isFailing = false;
  assert.ok(await askedAfter(2997));
  isFailing = true;
  assert.ok(await askedAfter(1000));
  assert.ok(await askedAfter(999));
  source.stop();
});

test("the start waits for one address, not for a silent server", async () => {
  const two = stage(() => answer(), {}, ["silent.example", "a.example"]);
  await two.start();
  assert.deepEqual(two.hosts, [["10.0.0.1"]]);
  two.source.stop();
  const failing = stage(() => Promise.reject(new Error("down")));
  await failing.start();
  failing.source.stop();
  const none = stage(() => answer(), { holdsStartUp: false }, ["silent.example"]);
  await none.start();
  assert.deepEqual(none.asked, ["silent.example"]);
  none.source.stop();
});
