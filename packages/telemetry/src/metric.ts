// The handles of metrics: on the request path a metric is an add on a number (prom-client took 480 ns for an increment
// with 8 labels, which is why these are our own). The registry makes them when configuration arrives.

export type Labels = Readonly<Record<string, string>>;
export type MetricType = "counter" | "gauge" | "histogram" | "text";

/** Upper bounds of Envoy's default histogram buckets (Envoy: `HistogramSettingsImpl::defaultBuckets`). */
export const defaultHistogramBuckets: readonly number[] = [
  0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000,
  3_600_000,
];

export interface MetricDescription {
  /** Prometheus family name, such as `envoy_cluster_upstream_rq_total`. */
  readonly name: string;
  readonly help?: string;
  readonly labels?: Labels;
  /**
   * Name in Envoy's stats tree, such as `cluster.a.upstream_rq_total`; only metrics that have one appear in `/stats`.
   */
  readonly statName?: string;
  /** What comes with requests decides on the labels: within limits, and given up once nobody adds to them. */
  readonly isLabelledByRequests?: boolean;
  /** Who asks has had no room for all values: a label that says `other` stands for those. */
  readonly isAskerFull?: boolean;
}

/** A request that was recorded, by the trace in which it can be looked at (OpenMetrics). */
export interface Exemplar {
  readonly traceId: string;
  readonly value: number;
  /** Wall clock. */
  readonly atMs: number;
}

export class Counter {
  value = 0;
  /** The last request that was traced. */
  exemplar: Exemplar | undefined = undefined;

  increment(): void {
    this.value += 1;
  }

  add(amount: number): void {
    this.value += amount;
  }
}

export class Gauge {
  value = 0;

  add(amount: number): void {
    this.value += amount;
  }

  set(value: number): void {
    this.value = value;
  }
}

/** A word of Envoy's statistics, such as a version; Prometheus has no such thing and is not shown it. */
export class Text {
  value = "";

  set(value: string): void {
    this.value = value;
  }
}

export class Histogram {
  readonly bounds: readonly number[];
  readonly bucketCounts: Float64Array;
  count = 0;
  sum = 0;
  /** By bucket, the last request that was traced; undefined until there is one. */
  exemplars: (Exemplar | undefined)[] | undefined = undefined;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.bucketCounts = new Float64Array(bounds.length + 1);
  }

  record(value: number): void {
    this.bucketCounts[this.#bucketOf(value)]! += 1;
    this.count += 1;
    this.sum += value;
  }

  /** Beside `record`, for the few requests that are traced. */
  addExemplar(exemplar: Exemplar): void {
    this.exemplars ??= Array.from({ length: this.bounds.length + 1 });
    this.exemplars[this.#bucketOf(exemplar.value)] = exemplar;
  }

  #bucketOf(value: number): number {
    const bounds = this.bounds;
    let index = 0;
    while (index < bounds.length && value > bounds[index]!) index += 1;
    return index;
  }
}

export type Metric = Counter | Gauge | Histogram | Text;

export interface Series {
  readonly name: string;
  readonly type: MetricType;
  readonly labels: Labels;
  readonly statName: string | undefined;
  readonly metric: Metric;
}

export interface MetricFamily {
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  readonly series: ReadonlyMap<string, Series>;
}
