// The registry of a process's metrics. A handle is resolved when configuration arrives.
import { exposition, expositionFormat, type ExpositionOptions, expositionTypes } from "./exposition.ts";
import { allOther, type LabelLimitOptions, LabelLimits, otherValue } from "./label-limits.ts";
import {
  Counter,
  defaultHistogramBuckets,
  Gauge,
  Histogram,
  type Labels,
  type Metric,
  type MetricDescription,
  type MetricFamily,
  type MetricType,
  type Series,
  Text,
} from "./metric.ts";

interface Family extends MetricFamily {
  readonly series: Map<string, Series>;
  isLabelledByRequests: boolean;
  /** Counts requests that went to `other`, once one has. */
  folded: Counter | undefined;
}

export interface MetricRegistryOptions extends LabelLimitOptions {
  /** Series kept at most; one more is counted in `tulle_metrics_dropped_series_total` and its handle leads nowhere. */
  readonly maxSeries?: number;
  /** Names under which labels are shown, where they differ from those that series are made with. */
  readonly shownLabels?: ReadonlyMap<string, string>;
  /** Told once for each family whose labels had to be folded into `other`. */
  readonly onFolded?: (family: string) => void;
}

const defaultMaxSeries = 100_000;

function seriesKey(labels: Labels): string {
  return Object.keys(labels)
    .sort()
    .map((name) => `${name}\0${labels[name]}`)
    .join("\0");
}

/** Owns every metric of a process; the same description gives the same handle. */
export class MetricRegistry {
  readonly #families = new Map<string, Family>();
  readonly #maxSeries: number;
  readonly #dropped: Counter;
  readonly #limits: LabelLimits;
  readonly #onFolded: (family: string) => void;
  readonly shownLabels: ReadonlyMap<string, string>;
  #seriesCount = 0;
  /** Of series that requests label: how much was recorded when `markIdle` looked. */
  #marked = new Map<Series, number | string>();

  constructor(options: MetricRegistryOptions = {}) {
    this.#maxSeries = options.maxSeries ?? defaultMaxSeries;
    this.#limits = new LabelLimits(options);
    this.#onFolded = options.onFolded ?? (() => undefined);
    this.shownLabels = options.shownLabels ?? new Map();
    this.#dropped = this.counter({
      name: "tulle_metrics_dropped_series_total",
      help: "Series not kept because the registry was full.",
    });
  }

  counter(description: MetricDescription): Counter {
    return this.#handle(description, "counter", () => new Counter());
  }

  gauge(description: MetricDescription): Gauge {
    return this.#handle(description, "gauge", () => new Gauge());
  }

  text(description: MetricDescription): Text {
    return this.#handle(description, "text", () => new Text());
  }

  histogram(description: MetricDescription, bounds: readonly number[] = defaultHistogramBuckets): Histogram {
    return this.#handle(description, "histogram", () => new Histogram(bounds));
  }

  /** Forgets every series that the predicate names, such as those of a cluster that was removed. */
  removeSeries(predicate: (series: Series) => boolean): void {
    for (const family of this.#families.values()) {
      for (const [key, series] of family.series) {
        if (!predicate(series)) continue;
        family.series.delete(key);
        this.#seriesCount -= 1;
      }
    }
  }

  *allSeries(): IterableIterator<Series> {
    for (const family of this.#families.values()) yield* family.series.values();
  }

  /** Remembers what each series that requests label has counted, for `dropIdle` to compare with. */
  markIdle(): void {
    this.#marked = new Map();
    for (const series of this.#labelledByRequests()) this.#marked.set(series, recorded(series.metric));
  }

  /**
   * Gives up those that have counted nothing since. Handles that others keep lead nowhere afterwards, so that they have
   * to be asked for again; a counter that comes back begins at 0, which Prometheus reads as the reset that it is.
   */
  dropIdle(): void {
    const marked = this.#marked;
    this.#marked = new Map();
    const isIdle = (series: Series): boolean => marked.get(series) === recorded(series.metric);
    const before = this.#seriesCount;
    this.removeSeries(isIdle);
    const dropped = before - this.#seriesCount;
    if (dropped > 0) this.#idleDropped().add(dropped);
    this.#limits.keepOnly([...this.#labelledByRequests()].map(({ labels }) => labels));
  }

  #idleDropped(): Counter {
    return this.counter({
      name: "tulle_metrics_idle_series_total",
      help: "Series given up because no request had added to them for a whole rotation.",
    });
  }

  *#labelledByRequests(): IterableIterator<Series> {
    for (const family of this.#families.values()) if (family.isLabelledByRequests) yield* family.series.values();
  }

  /** Text for Prometheus in pieces of a series each. What changes meanwhile may be in it or not. */
  pieces(options: ExpositionOptions = {}): Generator<string> {
    return exposition(this.#families.values(), { shownLabels: this.shownLabels, ...options });
  }

  /** The whole of it in the format that the scrape's `Accept` header asks for; undefined = text 0.0.4. */
  page(accept: string | undefined): { readonly contentType: string; readonly text: string } {
    const format = expositionFormat(accept);
    return { contentType: expositionTypes[format], text: [...this.pieces({ format })].join("") };
  }

  #handle<M extends Metric>(description: MetricDescription, type: MetricType, make: () => M): M {
    const family = this.#family(description, type);
    let labels = description.labels ?? {};
    if (family.isLabelledByRequests) labels = this.#within(family, labels, description.isAskerFull === true);
    const key = seriesKey(labels);
    const existing = family.series.get(key);
    if (existing !== undefined) return existing.metric as M;
    const metric = make();
    if (this.#seriesCount >= this.#maxSeries) {
      this.#dropped.increment();
      return metric;
    }
    this.#seriesCount += 1;
    family.series.set(key, { name: description.name, type, labels, statName: description.statName, metric });
    return metric;
  }

  #family({ name, help = "", isLabelledByRequests = false }: MetricDescription, type: MetricType): Family {
    let family = this.#families.get(name);
    if (family === undefined) {
      family = { name, type, help, series: new Map(), isLabelledByRequests, folded: undefined };
      this.#families.set(name, family);
    }
    if (family.type !== type) throw new Error(`metric ${name} is a ${family.type}, asked for as ${type}`);
    return family;
  }

  #within(family: Family, asked: Labels, isAskerFull: boolean): Labels {
    let labels = this.#limits.admit(asked);
    const isFull = family.series.size >= this.#limits.maxSeriesOfFamily;
    if (isFull && !family.series.has(seriesKey(labels))) labels = allOther(labels);
    const isFolded = labels !== asked || (isAskerFull && Object.values(asked).includes(otherValue));
    if (isFolded) this.#countFolded(family);
    return labels;
  }

  #countFolded(family: Family): void {
    if (family.folded === undefined) {
      family.folded = this.counter({
        name: "tulle_metrics_folded_label_sets_total",
        help: "Label sets counted under `other`, because their label or their family had too many already.",
        labels: { metric: family.name },
      });
      this.#onFolded(family.name);
    }
    family.folded.increment();
  }
}

function recorded(metric: Metric): number | string {
  return metric instanceof Histogram ? metric.count : metric.value;
}
