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

/**
 * By the requests of one measurement. Clients see more than the version does (connections that fail), and a canary that
 * wants to be promoted says of itself what it likes. So clients' word counts as soon as they have seen enough, and the
 * version's own can only make it worse: where it saw more than twice as much, since most clients are outside of the
 * mesh, or where clients are known by their clusters alone, which count no status of gRPC. Where clients have seen
 * less than half, and too little, the version's own word counts unless that little speaks against it.
 */
export function judgeTraffic(metric: RolloutMetric, counts: TrafficCounts): Verdict {
  const seen = (reporter: Reporter): number => requestsToJudge(metric, counts[reporter]);
  // Envoys have no filter for Istio's metrics. A difference of a few says nothing: proxies are read one by one.
  const clients = seen("cluster") > 2 * seen("source") ? "cluster" : "source";
  const [byClients, byItself] = [
    judgeBy(clients, metric, counts[clients]),
    judgeBy("destination", metric, counts.destination),
  ];
  const hasMore = seen("destination") > 2 * seen(clients);
  if (byClients.type === "judged") {
    return byClients.isGood && (hasMore || clients === "cluster") && isBad(byItself) ? byItself : byClients;
  }
  // Durations come later than requests.
  if (seen(clients) >= metric.minRequests) return byClients;
  if (hasMore) return isBad(byItself) || !isBad(ofFew(clients, metric, counts)) ? byItself : disputed(byClients);
  // Nothing to compare by: whoever saw the canary at all says what there is too little of.
  const isBlind = seen(clients) === 0 && counts[clients].canary.requests < counts.destination.canary.requests;
  return isBlind ? byItself : byClients;
}

/** Of both versions where they are compared. */
function requestsToJudge({ stableTolerance }: RolloutMetric, { stable, canary }: TrafficCounts[Reporter]): number {
  return stableTolerance === undefined ? canary.requests : Math.min(canary.requests, stable.requests);
}

/** What clients would say if what they saw were enough; of the stable version somebody else may know more. */
function ofFew(clients: Reporter, metric: RolloutMetric, counts: TrafficCounts): Verdict {
  const { canary, stable } = counts[clients];
  const other = stable.requests === 0 ? counts.destination.stable : stable;
  return judgeBy(clients, { ...metric, minRequests: 1 }, { canary, stable: other });
}

function disputed({ text }: Verdict): Verdict {
  return { type: "waiting", text: `${text}: clients saw worse than the version's own proxies say` };
}

function isBad(verdict: Verdict): boolean {
  return verdict.type === "judged" && !verdict.isGood;
}

function judgeBy(reporter: Reporter, metric: RolloutMetric, { stable, canary }: TrafficCounts[Reporter]): Verdict {
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
