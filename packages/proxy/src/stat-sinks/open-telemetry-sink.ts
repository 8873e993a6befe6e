// Metrics told to a collector by OTLP every few seconds (extensions.stat_sinks.open_telemetry.v3.SinkConfig). They are
// read from the registry while they are sent, a request of bounded size after another: a collector that is slow or down
// holds nothing up and keeps nothing but the request that is under way.
import { type Counter, MetricPoints, type MetricRegistry, type Series, type Temporality } from "@tulle/telemetry";
import { Pauses } from "@tulle/timing";
import { type GrpcCollector, type HttpCollector, sendToCollector } from "../upstream/batch-exporter.ts";
import { type ExportResult, ExportTrouble } from "../upstream/export-result.ts";
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
  /** 0 = as many as a request holds. */
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

export class OpenTelemetrySink {
  readonly #settings: StatSinkSettings;
  readonly #stats: StatSinkStats;
  readonly #metrics: MetricRegistry;
  readonly #dataPath: DataPath;
  readonly #clock: Clock;
  readonly #points: MetricPoints;
  readonly #trouble: ExportTrouble;
  #flushing: Promise<void> | undefined = undefined;

  constructor(settings: StatSinkSettings, stats: StatSinkStats, metrics: MetricRegistry, dataPath: DataPath) {
    this.#settings = settings;
    this.#stats = stats;
    this.#metrics = metrics;
    this.#dataPath = dataPath;
    this.#clock = dataPath.clock;
    this.#trouble = new ExportTrouble("metrics", settings.collector.cluster.name, dataPath);
    this.#points = new MetricPoints(pointsOf(settings, metrics), this.#clock.wallMs());
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
    const pauses = new Pauses();
    await this.#points.tell(this.#metrics.allSeries(), atMs, (items, points) => this.#send(items, points), {
      maxPoints: maxPointsPerRequest,
      pause: () => pauses.takeIfDue(),
    });
  }

  async #send(items: Buffer, points: number): Promise<void> {
    const { collector, envelope } = this.#settings;
    const { promise, resolve } = Promise.withResolvers<ExportResult>();
    sendToCollector(collector, envelope(items), this.#dataPath, resolve);
    const result = await promise;
    const lost = result.outcome === "sent" ? Math.min(points, result.rejectedItems) : points;
    this.#stats.sent.add(points - lost);
    this.#stats.dropped.add(lost);
    this.#trouble.onResult(result);
  }
}

function pointsOf(settings: StatSinkSettings, metrics: MetricRegistry) {
  const { prefix, counters, histograms, usesTagExtractedName, emitsTags } = settings;
  // Envoy's tags have dots; Istio's are as Prometheus shows them.
  const attribute = (label: string): string => metrics.shownLabels.get(label) ?? label.replace(/^envoy_/, "envoy.");
  const nameOf = (series: Series): string =>
    `${prefix}${usesTagExtractedName ? tagExtractedName(series) : (series.statName ?? series.name)}`;
  const attributesOf = ({ labels }: Series) =>
    emitsTags ? Object.entries(labels).map(([label, value]) => [attribute(label), value] as const) : [];
  return { counters, histograms, nameOf, attributesOf };
}
