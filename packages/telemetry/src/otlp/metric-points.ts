// The data points of a registry's series, as requests of OTLP of bounded size hold them: what has been told before is
// remembered, so that sums of all time have their begin, and deltas say what has come since.
import { Counter, type Exemplar, Histogram, type Series, Text } from "../metric.ts";
import { type Temporality, writeGauge, writeHistogram, writeSum } from "./metric-item.ts";
import { ProtobufWriter } from "./protobuf-writer.ts";

/** Collectors take 4 MiB by gRPC where they are told nothing else. */
const maxRequestBytes = 1024 * 1024;

/** One request; `items` are good until it has resolved. */
type SendPoints = (items: Buffer, points: number) => Promise<void>;

interface TellOptions {
  /** Of a request; 0 = as many as `maxRequestBytes` holds. */
  readonly maxPoints?: number;
  /** Is called between series, so that other work gets its turn. */
  readonly pause?: () => Promise<void>;
}

export interface MetricPointsSettings {
  readonly counters: Temporality;
  readonly histograms: Temporality;
  readonly nameOf: (series: Series) => string;
  readonly attributesOf: (series: Series) => readonly (readonly [key: string, value: string])[];
}

/** What of a series was told last. */
interface Told {
  readonly name: string;
  readonly attributes: readonly (readonly [string, string])[];
  /** Since when its sum is added up: the time before the one at which it was first seen. */
  readonly startMs: number;
  count: number;
  sum: number;
  bucketCounts: Float64Array | undefined;
}

export class MetricPoints {
  readonly #settings: MetricPointsSettings;
  readonly #told = new WeakMap<Series, Told>();
  readonly #writer = new ProtobufWriter();
  /** Wall clock, when series were last looked at. */
  #lastMs: number;

  constructor(settings: MetricPointsSettings, startMs: number) {
    this.#settings = settings;
    this.#lastMs = startMs;
  }

  /** All that there is to tell, in one request after another, each read when the one before it is through. */
  async tell(all: Iterable<Series>, atMs: number, send: SendPoints, options: TellOptions = {}): Promise<void> {
    const { maxPoints = 0, pause } = options;
    const writer = this.#writer;
    let points = 0;
    writer.clear();
    for (const series of all) {
      await pause?.();
      if (!this.#write(series, atMs)) continue;
      points += 1;
      if (writer.length < maxRequestBytes && points !== maxPoints) continue;
      await send(writer.written, points);
      writer.clear();
      points = 0;
    }
    if (points > 0) await send(writer.written, points);
    this.#lastMs = atMs;
  }

  /** Whether there is something to tell: of what was never used, and of no increase, there is not, as in Envoy. */
  #write(series: Series, atMs: number): boolean {
    const { metric, type } = series;
    if (metric instanceof Text) return false;
    const known = this.#told.get(series);
    if (known === undefined && (metric instanceof Histogram ? metric.count : metric.value) === 0) return false;
    const told = known ?? this.#begin(series);
    if (metric instanceof Histogram) return this.#writeHistogram(metric, told, atMs);
    const { name, attributes } = told;
    if (type === "gauge") {
      writeGauge(this.#writer, { name, attributes, atMs, value: metric.value });
      return true;
    }
    return this.#writeCounter(metric as Counter, told, atMs);
  }

  #writeCounter(counter: Counter, told: Told, atMs: number): boolean {
    const { name, attributes } = told;
    const { counters } = this.#settings;
    const since = counters === "delta" ? told.count : 0;
    const startMs = counters === "delta" ? this.#lastMs : told.startMs;
    const value = counter.value - since;
    if (counters === "delta" && value === 0) return false;
    told.count = counter.value;
    const exemplars = this.#newOnes([counter.exemplar]);
    writeSum(this.#writer, { name, attributes, startMs, atMs, value, exemplars }, counters);
    return true;
  }

  #writeHistogram(histogram: Histogram, told: Told, atMs: number): boolean {
    const { name, attributes } = told;
    const { bounds, count, sum, bucketCounts } = histogram;
    const { histograms } = this.#settings;
    if (histograms === "delta" && count === told.count) return false;
    const exemplars = histogram.exemplars === undefined ? [] : this.#newOnes(histogram.exemplars);
    const common = { name, attributes, atMs, bounds, exemplars };
    if (histograms === "cumulative") {
      writeHistogram(this.#writer, { ...common, startMs: told.startMs, count, sum, bucketCounts }, histograms);
      return true;
    }
    const before = told.bucketCounts ?? new Float64Array(bucketCounts.length);
    const since = {
      startMs: this.#lastMs,
      count: count - told.count,
      sum: sum - told.sum,
      bucketCounts: bucketCounts.map((own, index) => own - before[index]!),
    };
    told.count = count;
    told.sum = sum;
    told.bucketCounts = Float64Array.from(bucketCounts);
    writeHistogram(this.#writer, { ...common, ...since }, histograms);
    return true;
  }

  /** Each request is told as an example once. */
  #newOnes(exemplars: readonly (Exemplar | undefined)[]): readonly Exemplar[] {
    return exemplars.filter((exemplar) => exemplar !== undefined && exemplar.atMs > this.#lastMs) as Exemplar[];
  }

  #begin(series: Series): Told {
    const { nameOf, attributesOf } = this.#settings;
    const told: Told = {
      name: nameOf(series),
      attributes: attributesOf(series),
      startMs: this.#lastMs,
      count: 0,
      sum: 0,
      bucketCounts: undefined,
    };
    this.#told.set(series, told);
    return told;
  }
}
