// When a number is a good one.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutMetric } from "@tulle/config";
import { judgeNumber, judgeTraffic } from "./judge-metric.ts";
import type { TrafficCounts, VersionCounts } from "./traffic-counts.ts";

const counts = (requests: number, failed = 0, ms?: number): VersionCounts => ({
  requests,
  failed,
  buckets:
    ms === undefined
      ? new Map()
      : new Map([
          [ms, requests],
          [Number.POSITIVE_INFINITY, requests],
        ]),
});
const none = counts(0);
const seen = (
  canary: VersionCounts,
  stable = none,
  canaryItself = none,
  atCluster = none,
  stableAtCluster = none,
  stableItself = none,
): TrafficCounts => ({
  source: { canary, stable },
  destination: { canary: canaryItself, stable: stableItself },
  cluster: { canary: atCluster, stable: stableAtCluster },
});
const base = { name: "m", interval: "1s", count: 1, failureLimit: 0, minRequests: 10 };
const rate: RolloutMetric = { ...base, successRate: {}, thresholdRange: { min: 99 } };
const beside: RolloutMetric = { ...base, successRate: {}, stableTolerance: 1 };
const quick: RolloutMetric = { ...base, latency: { percentile: 100 }, thresholdRange: { max: 50 } };
const asQuick: RolloutMetric = { ...base, latency: { percentile: 100 }, stableTolerance: 20 };

const rows: readonly {
  readonly name: string;
  readonly metric: RolloutMetric;
  readonly counts: TrafficCounts;
  readonly expected: "good" | "bad" | "waiting";
  readonly text: RegExp;
}[] = [
  { name: "all well", metric: rate, counts: seen(counts(10)), expected: "good", text: /^100 % \(0 failed of 10/ },
  { name: "just good", metric: rate, counts: seen(counts(100, 1)), expected: "good", text: /^99 %/ },
  { name: "just bad", metric: rate, counts: seen(counts(100, 2)), expected: "bad", text: /^98 %.*at least 99 %/ },
  {
    name: "too few",
    metric: rate,
    counts: seen(counts(9)),
    expected: "waiting",
    text: /^9 of 10 requests to the canary/,
  },
  {
    name: "too few that clients saw, and enough at the version itself",
    metric: rate,
    counts: seen(counts(3), none, counts(10, 5)),
    expected: "bad",
    text: /seen by the version's own proxies/,
  },
  {
    name: "as many at both: clients know better",
    metric: rate,
    counts: seen(counts(10, 5), none, counts(10)),
    expected: "bad",
    text: /seen by clients/,
  },
  {
    name: "a few more at the version itself, whose proxies were read a moment later: clients know better",
    metric: rate,
    counts: seen(counts(36, 18), none, counts(40)),
    expected: "bad",
    text: /seen by clients;/,
  },
  {
    name: "nobody has Istio's metrics",
    metric: rate,
    counts: seen(none, none, none, counts(10, 5)),
    expected: "bad",
    text: /seen by clients' clusters/,
  },
  {
    name: "clusters have seen a few more, as they do of requests on their way: Istio's metrics know more",
    metric: rate,
    counts: seen(counts(18, 5), none, none, counts(20)),
    expected: "bad",
    text: /seen by clients;/,
  },
  {
    name: "clusters alone, and the version itself knows of a status of gRPC",
    metric: rate,
    counts: seen(none, none, counts(10, 5), counts(10)),
    expected: "bad",
    text: /seen by the version's own proxies/,
  },
  {
    name: "clusters alone, and the version itself has seen too little",
    metric: rate,
    counts: seen(none, none, counts(5), counts(10)),
    expected: "good",
    text: /seen by clients' clusters/,
  },
  {
    name: "clients outside of the mesh: nobody but the version itself has seen anything",
    metric: rate,
    counts: seen(none, none, counts(10)),
    expected: "good",
    text: /seen by the version's own proxies/,
  },
  {
    name: "many clients outside of the mesh fail, and those in it do not",
    metric: rate,
    counts: seen(counts(10), none, counts(100, 50)),
    expected: "bad",
    text: /seen by the version's own proxies/,
  },
  {
    name: "it claims a hundred times its clients' requests, which fail",
    metric: rate,
    counts: seen(counts(10, 5), none, counts(1000)),
    expected: "bad",
    text: /^50 %.*seen by clients;/,
  },
  {
    name: "it claims a hundred times the requests of Envoys, which fail",
    metric: rate,
    counts: seen(none, none, counts(1000), counts(10, 5)),
    expected: "bad",
    text: /^50 %.*seen by clients' clusters/,
  },
  {
    name: "it claims enough before its clients have seen enough, and what they saw is bad",
    metric: rate,
    counts: seen(counts(3, 1), none, counts(1000)),
    expected: "waiting",
    text: /^3 of 10 requests to the canary so far: clients saw worse/,
  },
  {
    name: "it claims enough, and the little that clients saw is good",
    metric: rate,
    counts: seen(counts(3), none, counts(10)),
    expected: "good",
    text: /seen by the version's own proxies/,
  },
  {
    name: "it claims to be quick, and clients' clusters show later how long it took",
    metric: quick,
    counts: seen(none, none, counts(1000, 0, 1), counts(10)),
    expected: "waiting",
    text: /no proxy shows how long/,
  },
  {
    name: "it claims to be quick, and is slow to its clients",
    metric: quick,
    counts: seen(counts(10, 0, 60), none, counts(1000, 0, 1)),
    expected: "bad",
    text: /^60 ms.*seen by clients;/,
  },
  {
    name: "it is compared, fails for its clients, and they see nothing of the stable version",
    metric: beside,
    counts: seen(counts(100, 50), none, counts(1000), none, none, counts(100)),
    expected: "waiting",
    text: /clients saw worse/,
  },
  {
    name: "few of many clients have Istio's metrics",
    metric: rate,
    counts: seen(counts(4), none, none, counts(10, 5)),
    expected: "bad",
    text: /seen by clients' clusters/,
  },
  {
    name: "the canary alone has Istio's metrics, and is compared",
    metric: beside,
    counts: seen(none, none, counts(10, 5), counts(10, 5), counts(10)),
    expected: "bad",
    text: /beside the stable version's 100 %\)$/,
  },
  {
    name: "nobody has seen the stable version",
    metric: beside,
    counts: seen(none, none, counts(10, 5), none, none),
    expected: "waiting",
    text: /0 of 10 requests to the stable version/,
  },
  {
    name: "no worse than the stable version, which is not good itself",
    metric: beside,
    counts: seen(counts(100, 11), counts(100, 10)),
    expected: "good",
    text: /at least 89 % beside the stable version's 90 %/,
  },
  {
    name: "worse than the stable version",
    metric: beside,
    counts: seen(counts(100, 12), counts(100, 10)),
    expected: "bad",
    text: /^88 %/,
  },
  {
    name: "nothing to compare with",
    metric: beside,
    counts: seen(counts(100), counts(9)),
    expected: "waiting",
    text: /9 of 10 requests to the stable version/,
  },
  { name: "quick", metric: quick, counts: seen(counts(10, 0, 50)), expected: "good", text: /^50 ms \(10 requests/ },
  { name: "slow", metric: quick, counts: seen(counts(10, 0, 51)), expected: "bad", text: /at most 50 ms/ },
  { name: "no durations", metric: quick, counts: seen(counts(10)), expected: "waiting", text: /no proxy shows/ },
  {
    name: "as quick as the stable version",
    metric: asQuick,
    counts: seen(counts(10, 0, 60), counts(10, 0, 50)),
    expected: "good",
    text: /at most 60 ms beside the stable version's 50 ms/,
  },
  {
    name: "slower than the stable version",
    metric: asQuick,
    counts: seen(counts(10, 0, 61), counts(10, 0, 50)),
    expected: "bad",
    text: /^61 ms/,
  },
  {
    name: "no durations of the stable version",
    metric: asQuick,
    counts: seen(counts(10, 0, 61), counts(10)),
    expected: "waiting",
    text: /the stable version took/,
  },
];

for (const { name, metric, counts: given, expected, text } of rows) {
  test(name, () => {
    const verdict = judgeTraffic(metric, given);
    const word = verdict.type === "judged" ? (verdict.isGood ? "good" : "bad") : verdict.type;
    assert.equal(word, expected, verdict.text);
    assert.match(verdict.text, text);
  });
}

test("the number of a query", () => {
  const metric: RolloutMetric = {
    ...base,
    prometheus: { address: "http://p", query: "q" },
    thresholdRange: { min: 1, max: 2 },
  };
  assert.deepEqual(judgeNumber(metric, 1.5), {
    type: "judged",
    isGood: true,
    text: "1.5 (wanted at least 1, at most 2)",
  });
  assert.deepEqual(judgeNumber(metric, 2.1), {
    type: "judged",
    isGood: false,
    text: "2.1 (wanted at least 1, at most 2)",
  });
});
