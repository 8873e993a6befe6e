// What hosts of a cluster have answered, or the router in their place, by code, and how long it took, under Envoy's
// names (`upstream_rq_completed`, `upstream_rq_2xx`, `upstream_rq_200`, `upstream_rq_time`): all together, and once
// more by who asked (`external.`, `internal.`), by the host's zone (`zone.OURS.ITS.`), of canaries (`canary.`), and of
// answers in whose place another was asked for (`retry.`). All are made with the first answer: most clusters are never
// asked.
import type { Counter, Histogram, MetricRegistry } from "@tulle/telemetry";
import { statDescription, type StatScope } from "../stats/stat-description.ts";

/** Hosts make codes up; RFC 9110 §15 has them between 100 and 599. */
const maxCodes = 64;

/** Of hosts that a control plane names; those of further ones count with all others alone. */
const maxZones = 64;

/** Who asked, and who answered. */
export interface AnswerOrigin {
  /** By Envoy's `x-envoy-internal`, or one of the proxy's own requests. */
  readonly isInternal: boolean;
  readonly isCanary: boolean;
  /** The host's; empty = none is known, or no host has answered. */
  readonly zone: string;
}

export class AnswerStats {
  readonly #metrics: MetricRegistry;
  readonly #scope: StatScope;
  readonly #ownZone: string;
  readonly #all: AnswerCounts;
  readonly #zones = new Map<string, AnswerCounts>();
  #internal: AnswerCounts | undefined = undefined;
  #external: AnswerCounts | undefined = undefined;
  #canary: AnswerCounts | undefined = undefined;
  #repeated: AnswerCounts | undefined = undefined;

  /** `ownZone` is the proxy's; empty = there are no counts by zone. */
  constructor(metrics: MetricRegistry, scope: StatScope, byClass: (Counter | undefined)[], ownZone: string) {
    this.#metrics = metrics;
    this.#scope = scope;
    this.#ownZone = ownZone;
    this.#all = new AnswerCounts(metrics, scope, "", byClass);
  }

  onAnswer(status: number, origin: AnswerOrigin): void {
    this.#all.onAnswer(status);
    this.#asked(origin.isInternal).onAnswer(status);
    if (origin.isCanary) (this.#canary ??= this.#counts("canary.")).onAnswer(status);
    if (origin.zone !== "") this.#ofZone(origin.zone)?.onAnswer(status);
  }

  /** Another answer is asked for in its place. */
  onRepeated(status: number): void {
    (this.#repeated ??= this.#counts("retry.")).onAnswer(status);
  }

  /** From the end of the request to that of the answer. */
  onEnd(tookMs: number, origin: AnswerOrigin): void {
    this.#all.onEnd(tookMs);
    this.#asked(origin.isInternal).onEnd(tookMs);
    if (origin.isCanary) (this.#canary ??= this.#counts("canary.")).onEnd(tookMs);
    if (origin.zone !== "") this.#ofZone(origin.zone)?.onEnd(tookMs);
  }

  #asked(isInternal: boolean): AnswerCounts {
    return isInternal ? (this.#internal ??= this.#counts("internal.")) : (this.#external ??= this.#counts("external."));
  }

  #ofZone(zone: string): AnswerCounts | undefined {
    let counts = this.#zones.get(zone);
    if (counts === undefined && this.#ownZone !== "" && this.#zones.size < maxZones) {
      counts = this.#counts(`zone.${this.#ownZone}.${zone}.`);
      this.#zones.set(zone, counts);
    }
    return counts;
  }

  #counts(prefix: string): AnswerCounts {
    return new AnswerCounts(this.#metrics, this.#scope, prefix, []);
  }
}

/** Answers of one sort. */
class AnswerCounts {
  readonly #metrics: MetricRegistry;
  readonly #scope: StatScope;
  readonly #prefix: string;
  /** From 1xx, which few have, to 5xx. */
  readonly #byClass: (Counter | undefined)[];
  readonly #byCode = new Map<number, Counter>();
  #completed: Counter | undefined = undefined;
  #timeMs: Histogram | undefined = undefined;

  constructor(metrics: MetricRegistry, scope: StatScope, prefix: string, byClass: (Counter | undefined)[]) {
    this.#metrics = metrics;
    this.#scope = scope;
    this.#prefix = prefix;
    this.#byClass = byClass;
  }

  onAnswer(status: number): void {
    this.#completed ??= this.#counter("upstream_rq_completed");
    this.#completed.increment();
    const index = Math.min(5, Math.floor(status / 100)) - 1;
    (this.#byClass[index] ??= this.#counter(`upstream_rq_${index + 1}xx`)).increment();
    let ofCode = this.#byCode.get(status);
    if (ofCode === undefined) {
      if (this.#byCode.size >= maxCodes) return;
      ofCode = this.#counter(`upstream_rq_${status}`);
      this.#byCode.set(status, ofCode);
    }
    ofCode.increment();
  }

  onEnd(tookMs: number): void {
    this.#timeMs ??= this.#metrics.histogram(statDescription(this.#scope, `${this.#prefix}upstream_rq_time`));
    this.#timeMs.record(tookMs);
  }

  #counter(stat: string): Counter {
    return this.#metrics.counter(statDescription(this.#scope, this.#prefix + stat));
  }
}
