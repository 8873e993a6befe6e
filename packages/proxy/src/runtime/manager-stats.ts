// How many clusters and listeners there are, and how often they come, change and go, under Envoy's names
// (`cluster_manager.cluster_added`, `listener_manager.total_listeners_active`).
import type { Counter, Gauge, MetricRegistry } from "@tulle/telemetry";

export class ManagerStats {
  readonly #added: Counter;
  readonly #modified: Counter;
  readonly #removed: Counter;
  readonly #active: Gauge;

  constructor(metrics: MetricRegistry, kind: "cluster" | "listener") {
    const root = `${kind}_manager`;
    const described = (stat: string) => ({ name: `envoy_${root}_${stat}`, statName: `${root}.${stat}` });
    this.#added = metrics.counter(described(`${kind}_added`));
    this.#modified = metrics.counter(described(`${kind}_modified`));
    this.#removed = metrics.counter(described(`${kind}_removed`));
    this.#active = metrics.gauge(described(kind === "cluster" ? "active_clusters" : "total_listeners_active"));
  }

  /** `had` and `has`: whether there was one of the name before, and is one now. */
  onChange(had: boolean, has: boolean): void {
    if (had && has) this.#modified.increment();
    else if (has) this.#added.increment();
    else if (had) this.#removed.increment();
    this.#active.add(Number(has) - Number(had));
  }
}
