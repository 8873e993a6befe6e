// The metrics of a server itself, such as the control plane, sent off by OTLP now and then, as its environment asks.
// They are read while they are sent, a request of bounded size after another: a collector that is away or slow costs
// points, which are counted, and nothing is kept for it.
import type { Logger } from "../log.ts";
import type { Counter } from "../metric.ts";
import type { MetricRegistry } from "../metrics.ts";
import { MetricPoints } from "./metric-points.ts";
import { type MetricExportSettings, metricsEnvironment } from "./metrics-environment.ts";
import { OtlpSender } from "./otlp-sender.ts";

/** What the last values may hold up the end of the process; they are dropped then. */
const closeMs = 1000;

export interface MetricExporterStats {
  /** Data points that the collector took, and those that it did not. */
  readonly sent: Counter;
  readonly dropped: Counter;
  /** Times at which the last time was not over. */
  readonly skipped: Counter;
}

export interface MetricExporterOptions {
  readonly settings: MetricExportSettings;
  readonly version: string;
  readonly metrics: MetricRegistry;
  /** Brings up to date what is only read when it is shown. */
  readonly refresh: () => void;
  readonly stats: MetricExporterStats;
}

export class MetricExporter {
  readonly #options: MetricExporterOptions;
  readonly #points: MetricPoints;
  readonly #sender: OtlpSender;
  readonly #timer: NodeJS.Timeout;
  #flushing: Promise<void> | undefined;

  constructor(options: MetricExporterOptions) {
    const { settings, version } = options;
    const { temporality, intervalMs } = settings;
    this.#options = options;
    this.#sender = new OtlpSender(settings, version);
    this.#points = new MetricPoints(
      {
        counters: temporality,
        histograms: temporality,
        nameOf: ({ name }) => name,
        attributesOf: ({ labels }) => Object.entries(labels),
      },
      Date.now(),
    );
    this.#timer = setInterval(() => void this.flush(), intervalMs).unref();
  }

  /** Resolves when all has been told, or could not be; at once while the last time is not over. */
  async flush(): Promise<void> {
    if (this.#flushing !== undefined) {
      this.#options.stats.skipped.increment();
      return;
    }
    this.#flushing = this.#flush().finally(() => (this.#flushing = undefined));
    await this.#flushing;
  }

  async #flush(): Promise<void> {
    const { metrics, refresh, settings, stats } = this.#options;
    refresh();
    const endsAtMs = performance.now() + settings.exportTimeoutMs;
    await this.#points.tell(metrics.allSeries(), Date.now(), async (items, points) => {
      const isTaken = performance.now() < endsAtMs && (await this.#sender.send(items));
      (isTaken ? stats.sent : stats.dropped).add(points);
    });
  }

  /** Tells the last values, within a second. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const timer = setTimeout(() => this.#sender.close(), closeMs);
    await this.#flushing;
    await this.flush();
    clearTimeout(timer);
    this.#sender.close();
  }
}

export interface OpenMetricExporterOptions extends Pick<MetricExporterOptions, "version" | "metrics" | "refresh"> {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Unless OTEL_SERVICE_NAME says another one. */
  readonly serviceName: string;
  readonly log: Logger;
}

/** Undefined: nobody asks for it. */
export function openMetricExporter(options: OpenMetricExporterOptions): MetricExporter | undefined {
  const { environment, serviceName, version, metrics, refresh, log } = options;
  const { settings, problems } = metricsEnvironment(environment, serviceName);
  for (const problem of problems) log.warning("metrics are not sent as the environment asks", { problem });
  if (settings === undefined) return undefined;
  const counter = (what: string, help: string) => metrics.counter({ name: `tulle_own_metric_${what}_total`, help });
  log.info("sending metrics", {
    service: settings.serviceName,
    collector: settings.endpoint.host,
    protocol: settings.protocol,
    intervalMs: settings.intervalMs,
  });
  const stats = {
    sent: counter("points_sent", "Data points of this process that a collector took."),
    dropped: counter("points_dropped", "Data points of this process that no collector took."),
    skipped: counter("flushes_skipped", "Times at which the collector still had the data of the time before."),
  };
  return new MetricExporter({ settings, version, metrics, refresh, stats });
}
