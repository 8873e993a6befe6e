// Metrics told to a collector by OTLP every few seconds (extensions.stat_sinks.open_telemetry.v3.SinkConfig). They are
// read from the registry while they are sent, a request of bounded size after another: a collector that is slow or down
// holds nothing up and keeps nothing but the request that is under way.
import {
  type Counter,
  type Exemplar,
  Histogram,
  type MetricRegistry,
  ProtobufWriter,
  type Series,
  type Temporality,
  Text,
  writeGauge,
  writeHistogram,
  writeSum,
} from "@tulle/telemetry";
import { Pauses } from "@tulle/timing";
import {
  type ExportOutcome,
  type GrpcCollector,
  type HttpCollector,
  sendToCollector,
} from "../upstream/batch-exporter.ts";
import type { Clock } from "../worker/clock.ts";
import type { DataPath } from "../worker/data-path.ts";
import { tagExtractedName } from "./tag-extracted-name.ts";

export interface StatSinkSettings {
  readonly collector: GrpcCollector | HttpCollector;
  readonly counters: Temporality;
  readonly histograms: Temporality;
  readonly emitsTags: boolean;
  readonly usesTagExtractedName: boolean;
  /** Before each name, its dot included. */
  readonly prefix: string;
  /** 0 = as many as `maxRequestBytes` holds. */
  readonly maxPointsPerRequest: number;
  readonly envelope: (items: Buffer) => Buffer;
}

export interface StatSinkStats {
  /** Data points that the collector took, and those that it did not. */
  readonly sent: Counter;
  readonly dropped: Counter;
  /** Times at which the collector still had a request of the last time. */
  readonly skipped: Counter;
}

/** Collectors take 4 MiB by gRPC where they are told nothing else. */
const maxRequestBytes = 1024 * 1024;

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

export class OpenTelemetrySink {
  readonly #settings: StatSinkSettings;
  readonly #stats: StatSinkStats;
  readonly #metrics: MetricRegistry;
  readonly #dataPath: DataPath;
  readonly #clock: Clock;
  readonly #told = new WeakMap<Series, Told>();
  readonly #writer = new ProtobufWriter();
  #flushing: Promise<void> | undefined = undefined;
  #lastMs: number;

  constructor(settings: StatSinkSettings, stats: StatSinkStats, metrics: MetricRegistry, dataPath: DataPath) {
    this.#settings = settings;
    this.#stats = stats;
    this.#metrics = metrics;
    this.#dataPath = dataPath;
    this.#clock = dataPath.clock;
    this.#lastMs = this.#clock.wallMs();
  }

  /** Resolves when all has been told, or could not be; at once while the last time is not over. */
  async flush(): Promise<void> {
    if (this.#flushing !== undefined) {
      this.#stats.skipped.increment();
      return;
    }
    this.#flushing = this.#flush(this.#clock.wallMs()).finally(() => (this.#flushing = undefined));
    await this.#flushing;
  }

  /** As `flush`, behind the time before, if that is not over. */
  async finish(): Promise<void> {
    await this.#flushing;
    await this.flush();
  }

  async #flush(atMs: number): Promise<void> {
    const { maxPointsPerRequest } = this.#settings;
    const writer = this.#writer;
    const pauses = new Pauses();
    writer.clear();
    let points = 0;
    for (const series of this.#metrics.allSeries()) {
      if (!this.#write(series, atMs)) continue;
      points += 1;
      if (writer.length >= maxRequestBytes || points === maxPointsPerRequest) {
        await this.#send(points);
        points = 0;
      }
      await pauses.takeIfDue();
    }
    if (points > 0) await this.#send(points);
    this.#lastMs = atMs;
  }

  async #send(points: number): Promise<void> {
    const body = this.#settings.envelope(this.#writer.written);
    this.#writer.clear();
    const { promise, resolve } = Promise.withResolvers<ExportOutcome>();
    sendToCollector(this.#settings.collector, body, this.#dataPath, resolve);
    const { sent, dropped } = this.#stats;
    ((await promise) === "sent" ? sent : dropped).add(points);
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
    const { prefix, usesTagExtractedName, emitsTags } = this.#settings;
    const name = usesTagExtractedName ? tagExtractedName(series) : (series.statName ?? series.name);
    const attributes = emitsTags
      ? Object.entries(series.labels).map(([label, value]) => [this.#attributeOf(label), value] as const)
      : [];
    const told: Told = {
      name: `${prefix}${name}`,
      attributes,
      startMs: this.#lastMs,
      count: 0,
      sum: 0,
      bucketCounts: undefined,
    };
    this.#told.set(series, told);
    return told;
  }

  /** Envoy's tags have dots; Istio's are as Prometheus shows them. */
  #attributeOf(label: string): string {
    return this.#metrics.shownLabels.get(label) ?? label.replace(/^envoy_/, "envoy.");
  }
}
