// At the bootstrap's interval, what the process tells of itself is brought up to date, and all is sent to its sinks.
import type { MetricRegistry } from "@tulle/telemetry";
import { keepServerStats, type ServerProgress, type ServerStats } from "../stats/server-stats.ts";
import { eachOf } from "../stats/stat-description.ts";
import type { CommonTlsContext } from "../tls/common-tls-context.ts";
import type { DataPath } from "../worker/data-path.ts";
import { OpenTelemetrySink, type StatSinkSettings } from "./open-telemetry-sink.ts";

export interface StatSinksOptions {
  readonly bootstrap: { readonly statsFlushIntervalMs: number };
  readonly settings: readonly StatSinkSettings[];
  readonly progress: ServerProgress;
  readonly tlsContexts: () => readonly CommonTlsContext[];
  readonly connectionCount: () => number;
  readonly metrics: MetricRegistry;
  readonly dataPath: DataPath;
}

const names = { sent: "points_sent", dropped: "points_dropped", skipped: "flushes_skipped" };

export class StatSinks implements Disposable {
  readonly #options: StatSinksOptions;
  readonly #sinks: readonly OpenTelemetrySink[];
  readonly #serverStats: ServerStats;
  #timer: unknown = undefined;

  constructor(options: StatSinksOptions) {
    const { settings, metrics, dataPath, progress } = options;
    this.#options = options;
    this.#serverStats = keepServerStats(metrics, progress, options);
    this.#arm();
    if (settings.length === 0) {
      this.#sinks = [];
      return;
    }
    const stats = eachOf(names, (stat) =>
      metrics.counter({
        name: `envoy_stat_sinks_open_telemetry_${stat}`,
        statName: `stat_sinks.open_telemetry.${stat}`,
      }),
    );
    this.#sinks = settings.map((each) => new OpenTelemetrySink(each, stats, metrics, dataPath));
  }

  /** Resolves when each sink has what there is, or has failed. */
  async flush(): Promise<void> {
    this.#serverStats.take();
    await Promise.all(this.#sinks.map((sink) => sink.flush()));
  }

  /** Before the end of the process: nothing is told after it. */
  async finish(): Promise<void> {
    this[Symbol.dispose]();
    this.#serverStats.take();
    await Promise.all(this.#sinks.map((sink) => sink.finish()));
  }

  #arm(): void {
    const { dataPath, bootstrap } = this.#options;
    this.#timer = dataPath.clock.setTimer(() => {
      this.#arm();
      void this.flush();
    }, bootstrap.statsFlushIntervalMs);
  }

  [Symbol.dispose](): void {
    this.#options.dataPath.clock.clearTimer(this.#timer);
  }
}
