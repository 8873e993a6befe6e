// How long connections to a cluster took to come up, how long they were there, and how many requests each carried,
// under Envoy's names. Made with the first of them: most clusters are never asked.
import type { Histogram, MetricRegistry } from "@tulle/telemetry";
import { statDescription, type StatScope } from "../stats/stat-description.ts";

export class ConnectionLives {
  readonly #metrics: MetricRegistry;
  readonly #scope: StatScope;
  #connectMs: Histogram | undefined = undefined;
  #lengthMs: Histogram | undefined = undefined;
  #requests: Histogram | undefined = undefined;

  constructor(metrics: MetricRegistry, scope: StatScope) {
    this.#metrics = metrics;
    this.#scope = scope;
  }

  /** Until it took requests, its handshake included. */
  onConnected(tookMs: number): void {
    this.#connectMs ??= this.#histogram("upstream_cx_connect_ms");
    this.#connectMs.record(tookMs);
  }

  /** From its begin, whether it came up or not. */
  onClosed(lastedMs: number): void {
    this.#lengthMs ??= this.#histogram("upstream_cx_length_ms");
    this.#lengthMs.record(lastedMs);
  }

  /** So many had it, from its begin to its end. */
  onRequests(count: number): void {
    this.#requests ??= this.#histogram("upstream_rq_per_cx");
    this.#requests.record(count);
  }

  #histogram(stat: string): Histogram {
    return this.#metrics.histogram(statDescription(this.#scope, stat));
  }
}
