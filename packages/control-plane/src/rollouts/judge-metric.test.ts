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
): TrafficCounts => ({
  source: { canary, stable },
  destination: { canary: canaryItself, stable: none },
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
    name: "clusters have seen more, as they do of requests on their way, and the proxies most",
    metric: rate,
    counts: seen(none, none, counts(5), counts(10, 5)),
    expected: "waiting",
    text: /^5 of 10/,
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
