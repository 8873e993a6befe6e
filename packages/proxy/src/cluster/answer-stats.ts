// What hosts of a cluster have answered, or the router in their place, by code, and how long it took, under Envoy's
// names (`upstream_rq_completed`, `upstream_rq_2xx`, `upstream_rq_200`, `upstream_rq_time`). Single codes and the time
// are made with the first answer, as in Envoy: most clusters are never asked.
import type { Counter, Histogram, MetricRegistry } from "@tulle/telemetry";
import { statDescription, type StatScope } from "../stats/stat-description.ts";

/** Hosts make codes up; RFC 9110 §15 has them between 100 and 599. */
const maxCodes = 64;

export class AnswerStats {
  readonly #metrics: MetricRegistry;
  readonly #scope: StatScope;
  /** From 1xx, which few have, to 5xx. */
  readonly #byClass: (Counter | undefined)[];
  readonly #byCode = new Map<number, Counter>();
  #completed: Counter | undefined = undefined;
  #timeMs: Histogram | undefined = undefined;

  constructor(metrics: MetricRegistry, scope: StatScope, byClass: (Counter | undefined)[]) {
    this.#byClass = byClass;
    this.#metrics = metrics;
    this.#scope = scope;
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

  /** From the end of the request to that of the answer. */
  onEnd(tookMs: number): void {
    this.#timeMs ??= this.#metrics.histogram(statDescription(this.#scope, "upstream_rq_time"));
    this.#timeMs.record(tookMs);
  }

  #counter(stat: string): Counter {
    return this.#metrics.counter(statDescription(this.#scope, stat));
  }
}
