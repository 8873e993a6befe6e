// What speaks for and against a canary, gathered for one roll-out while it is measured: the proxies' own metrics, read
// again and again, and queries of Prometheus.
import type { ActiveMetric } from "./rollout-machine.ts";
import { judgeNumber, judgeTraffic, type Verdict } from "./judge-metric.ts";
import type { QueryResult } from "./query-prometheus.ts";
import type { PodMetrics } from "./read-proxy-metrics.ts";
import { countsSince, type KnownVersions, TrafficCounter, type TrafficCounts, type Version } from "./traffic-counts.ts";

/** Pods whose proxies are read for one look; further ones are passed over. */
export const maxPods = 2000;
const parallelReads = 16;

export interface EvidenceSources {
  /** Lines that may count requests to the host. */
  readonly readMetrics: (address: string, host: string) => Promise<PodMetrics>;
  readonly query: (prometheus: NonNullable<ActiveMetric["metric"]["prometheus"]>) => Promise<QueryResult>;
}

export interface MeasuredPod {
  readonly id: string;
  readonly address: string;
  /** Whose pod it is; undefined for one of neither. */
  readonly version: Version | undefined;
}

/** Where the requests of a roll-out are counted, and whose they are. */
export interface MeasuredTraffic {
  readonly host: string;
  /** Those with a proxy. */
  readonly pods: readonly MeasuredPod[];
  readonly versions: KnownVersions;
}

/** One for each time that a roll-out begins to be measured. */
export class RolloutEvidence {
  readonly #sources: EvidenceSources;
  readonly #counter = new TrafficCounter();
  /** By the metric's key: the counts at which its measurement began. */
  readonly #begin = new Map<string, TrafficCounts>();
  /** By the pod's id: who had its agent's address when it was read last. */
  readonly #strangers = new Map<string, string>();

  constructor(sources: EvidenceSources) {
    this.#sources = sources;
  }

  /** What is wrong where somebody else has an agent's address, and what to do; undefined where nobody has. */
  get strangers(): string | undefined {
    const [first] = this.#strangers;
    if (first === undefined) return undefined;
    const [pod, holder] = first;
    const others = this.#strangers.size === 1 ? "" : `, and so for ${this.#strangers.size - 1} other pods`;
    return `${holder}, which is not the agent of the pod ${pod}${others}: what it says is not counted, and no measurement is good. End it, and the agent takes its address again`;
  }

  /** Forgets what is no longer measured: a metric that comes again begins anew. */
  keep(keys: ReadonlySet<string>): void {
    for (const key of this.#begin.keys()) if (!keys.has(key)) this.#begin.delete(key);
  }

  /** Measurements of what comes from now on. */
  async begin(keys: readonly string[], traffic: MeasuredTraffic): Promise<void> {
    await this.#read(traffic);
    for (const key of keys) this.#begin.set(key, this.#counter.counts);
  }

  /** Judges each by what has come since its measurement began; one that is judged begins its next. Never rejects. */
  async judge(
    metrics: readonly ActiveMetric[],
    traffic: MeasuredTraffic,
  ): Promise<readonly { readonly active: ActiveMetric; readonly verdict: Verdict }[]> {
    const byTraffic = metrics.filter(({ metric }) => metric.prometheus === undefined);
    const answered = byTraffic.length === 0 ? 0 : await this.#read(traffic);
    const counts = this.#counter.counts;
    const ofTraffic = byTraffic.map((active) => {
      const begin = this.#begin.get(active.key) ?? counts;
      const verdict = this.#verdict(active, answered, countsSince(counts, begin));
      if (verdict.type === "judged" || !this.#begin.has(active.key)) this.#begin.set(active.key, counts);
      return { active, verdict };
    });
    const queried = await Promise.all(
      metrics.flatMap((active) => {
        const { prometheus } = active.metric;
        return prometheus === undefined ? [] : [this.#query(active, prometheus)];
      }),
    );
    return [...ofTraffic, ...queried];
  }

  /** What a stranger keeps back could speak against the canary: without it something can be bad, and nothing good. */
  #verdict({ metric }: ActiveMetric, answered: number, counts: TrafficCounts): Verdict {
    const { strangers } = this;
    if (answered === 0) return { type: "unanswered", text: strangers ?? "no proxy shows its metrics" };
    const verdict = judgeTraffic(metric, counts);
    const isBad = verdict.type === "judged" && !verdict.isGood;
    return strangers === undefined || isBad ? verdict : { type: "unanswered", text: strangers };
  }

  async #query(active: ActiveMetric, prometheus: NonNullable<ActiveMetric["metric"]["prometheus"]>) {
    const result = await this.#sources.query(prometheus);
    const verdict: Verdict =
      "value" in result
        ? judgeNumber(active.metric, result.value)
        : "empty" in result
          ? { type: "waiting", text: result.empty }
          : { type: "unanswered", text: result.problem };
    return { active, verdict };
  }

  /** How many pods have answered. */
  async #read({ host, pods, versions }: MeasuredTraffic): Promise<number> {
    const read = pods.slice(0, maxPods);
    const ids = new Set(read.map(({ id }) => id));
    this.#counter.keep(ids);
    for (const id of this.#strangers.keys()) if (!ids.has(id)) this.#strangers.delete(id);
    let answered = 0;
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let pod = read[next++]; pod !== undefined; pod = read[next++]) {
        const metrics = await this.#sources.readMetrics(pod.address, host);
        if (metrics === undefined || !("stranger" in metrics)) this.#strangers.delete(pod.id);
        else this.#strangers.set(pod.id, metrics.stranger);
        if (metrics === undefined || "stranger" in metrics) continue;
        answered += 1;
        this.#counter.take(pod.id, metrics, versions, pod.version);
      }
    };
    await Promise.all(Array.from({ length: parallelReads }, worker));
    return answered;
  }
}
