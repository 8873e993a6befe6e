// Whether a measured number is a good one, in words that a person can check.
import type { RolloutMetric } from "@tulle/config";
import { percentile, type Reporter, type TrafficCounts, type VersionCounts } from "./traffic-counts.ts";

export type Verdict =
  | { readonly type: "judged"; readonly isGood: boolean; readonly text: string }
  /** There is too little to judge by. */
  | { readonly type: "waiting"; readonly text: string }
  /** Whoever was asked does not answer. */
  | { readonly type: "unanswered"; readonly text: string };

const seenBy: Readonly<Record<Reporter, string>> = {
  source: "clients",
  destination: "the version's own proxies",
  cluster: "clients' clusters",
};

/** By the requests of one measurement. */
export function judgeTraffic(metric: RolloutMetric, counts: TrafficCounts): Verdict {
  const reporter = bestReporter(metric, counts);
  const { stable, canary } = counts[reporter];
  const { minRequests, stableTolerance } = metric;
  if (canary.requests < minRequests) {
    return { type: "waiting", text: `${canary.requests} of ${minRequests} requests to the canary so far` };
  }
  if (stableTolerance !== undefined && stable.requests < minRequests) {
    return {
      type: "waiting",
      text: `${stable.requests} of ${minRequests} requests to the stable version so far, to compare with`,
    };
  }
  const [value, other] = [valueOf(metric, canary), valueOf(metric, stable)];
  if (Number.isNaN(value)) return { type: "waiting", text: "no proxy shows how long requests to the canary took" };
  if (stableTolerance !== undefined && Number.isNaN(other))
    return { type: "waiting", text: "no proxy shows how long requests to the stable version took" };
  const failed = metric.successRate === undefined ? "" : `${canary.failed} failed of `;
  const worst = stableTolerance === undefined ? undefined : worstBeside(metric, other, stableTolerance);
  const isGood = isWithin(metric, value) && (worst === undefined || isNoWorse(metric, value, worst));
  const wanted = [...rangeTexts(metric), ...(worst === undefined ? [] : [besideText(metric, other, worst)])];
  const text = `${number(value)}${unit(metric)} (${failed}${canary.requests} requests, seen by ${seenBy[reporter]}; wanted ${wanted.join(", ")})`;
  return { type: "judged", isGood, text };
}

/**
 * Clients see more than the version does (connections that fail), but not every client's proxy counts: a stock Envoy
 * has no filter for it. So the next in this row counts where those before have seen less than half of what it has, of
 * both versions where they are compared: the version's own proxies, then Envoy's own statistics, which know less of
 * each request. A difference of a few says nothing: proxies are read one after the other, while requests go on.
 */
function bestReporter({ stableTolerance }: RolloutMetric, counts: TrafficCounts): Reporter {
  const seen = (reporter: Reporter): number => {
    const { stable, canary } = counts[reporter];
    return stableTolerance === undefined ? canary.requests : Math.min(canary.requests, stable.requests);
  };
  const better = seen("destination") > 2 * seen("source") ? "destination" : "source";
  if (seen("cluster") > 2 * seen(better)) return "cluster";
  if (seen(better) > 0) return better;
  // Nothing to compare by: whoever saw the canary at all says what there is too little of.
  return counts.source.canary.requests >= counts.destination.canary.requests ? "source" : "destination";
}

/** By the number that a query gave. */
export function judgeNumber(metric: RolloutMetric, value: number): Verdict {
  const text = `${number(value)} (wanted ${rangeTexts(metric).join(", ")})`;
  return { type: "judged", isGood: isWithin(metric, value), text };
}

function valueOf({ latency }: RolloutMetric, { requests, failed, buckets }: VersionCounts): number {
  if (latency !== undefined) return percentile(buckets, latency.percentile);
  return requests === 0 ? Number.NaN : (100 * (requests - failed)) / requests;
}

function isWithin({ thresholdRange: { min, max } = {} }: RolloutMetric, value: number): boolean {
  return value >= (min ?? Number.NEGATIVE_INFINITY) && value <= (max ?? Number.POSITIVE_INFINITY);
}

/** The worst good value beside the stable version's: percentage points below, or percent above. */
function worstBeside({ latency }: RolloutMetric, stable: number, tolerance: number): number {
  return latency === undefined ? stable - tolerance : stable * (1 + tolerance / 100);
}

function isNoWorse({ latency }: RolloutMetric, value: number, worst: number): boolean {
  return latency === undefined ? value >= worst : value <= worst;
}

function rangeTexts(metric: RolloutMetric): string[] {
  const { min, max } = metric.thresholdRange ?? {};
  return [
    ...(min === undefined ? [] : [`at least ${number(min)}${unit(metric)}`]),
    ...(max === undefined ? [] : [`at most ${number(max)}${unit(metric)}`]),
  ];
}

function besideText(metric: RolloutMetric, stable: number, worst: number): string {
  const bound = metric.latency === undefined ? "at least" : "at most";
  return `${bound} ${number(worst)}${unit(metric)} beside the stable version's ${number(stable)}${unit(metric)}`;
}

function unit({ successRate, latency }: RolloutMetric): string {
  if (successRate !== undefined) return " %";
  return latency === undefined ? "" : " ms";
}

function number(value: number): string {
  return String(Math.round(value * 100) / 100);
}
