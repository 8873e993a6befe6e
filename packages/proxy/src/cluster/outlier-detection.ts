// Takes hosts that keep failing out of the balancer's choice for a while, by what requests themselves see of them
// (Envoy: OutlierDetection, `DetectorImpl`). One detector a cluster; the router tells it how each try went.
//
// A host is either in use or ejected. It is ejected for `baseEjectionTimeMs` times the number of ejections in a row, at
// most `maxEjectionTimeMs`; each interval without an ejection takes one off that number.
import type { Counter, Gauge, Logger, MetricRegistry } from "@tulle/telemetry";
import type { Clock } from "../worker/clock.ts";
import type { Host } from "./cluster.ts";
import { counterGroup, gaugeGroup } from "../stats/stat-description.ts";

/** Envoy's fields and defaults (config.cluster.v3.OutlierDetection); percentages from 0 to 100. */
export interface OutlierDetectionSettings {
  readonly intervalMs: number;
  readonly baseEjectionTimeMs: number;
  readonly maxEjectionTimeMs: number;
  readonly maxEjectionTimeJitterMs: number;
  readonly maxEjectionPercent: number;
  readonly alwaysEjectOneHost: boolean;
  /** Connections that fail and tries that time out are counted apart from what hosts answer. */
  readonly splitsLocalOrigin: boolean;
  /** A host that an active check finds well is back at once. */
  readonly returnsCheckedHosts: boolean;
  readonly consecutive: Readonly<Record<ConsecutiveCause, ConsecutiveLimit>>;
  readonly successRate: SuccessRateSettings;
  readonly failurePercentage: FailurePercentageSettings;
}

export type ConsecutiveCause = "consecutive_5xx" | "consecutive_gateway_failure" | "consecutive_local_origin_failure";
type RateCause =
  | "success_rate"
  | "failure_percentage"
  | "local_origin_success_rate"
  | "local_origin_failure_percentage";
export type EjectionCause = ConsecutiveCause | RateCause;

export interface ConsecutiveLimit {
  readonly limit: number;
  readonly enforcedPercent: number;
}

export interface SuccessRateSettings {
  readonly minimumHosts: number;
  readonly requestVolume: number;
  /** In thousandths of a standard deviation, below the mean. */
  readonly stdevFactor: number;
  readonly enforcedPercent: number;
  readonly enforcedPercentLocalOrigin: number;
}

export interface FailurePercentageSettings {
  readonly thresholdPercent: number;
  readonly minimumHosts: number;
  readonly requestVolume: number;
  readonly enforcedPercent: number;
  readonly enforcedPercentLocalOrigin: number;
}

export type OutlierStats = Readonly<Record<`detected_${EjectionCause}` | `enforced_${EjectionCause}`, Counter>> & {
  readonly overflow: Counter;
  readonly enforcedTotal: Counter;
  readonly active: Gauge;
};

const causes: readonly EjectionCause[] = [
  "consecutive_5xx",
  "consecutive_gateway_failure",
  "consecutive_local_origin_failure",
  "success_rate",
  "failure_percentage",
  "local_origin_success_rate",
  "local_origin_failure_percentage",
];

/** `cluster.<name>.outlier_detection.…` by Envoy's names. */
export function makeOutlierStats(metrics: MetricRegistry, clusterName: string): OutlierStats {
  const scope = { root: "cluster", name: clusterName, label: "envoy_cluster_name" };
  const names = Object.fromEntries(
    causes.flatMap((cause) =>
      (["detected", "enforced"] as const).map((what) => [
        `${what}_${cause}`,
        `outlier_detection.ejections_${what}_${cause}`,
      ]),
    ),
  ) as Record<`detected_${EjectionCause}` | `enforced_${EjectionCause}`, string>;
  return {
    ...counterGroup(metrics, scope, {
      ...names,
      overflow: "outlier_detection.ejections_overflow",
      enforcedTotal: "outlier_detection.ejections_enforced_total",
    }),
    ...gaugeGroup(metrics, scope, { active: "outlier_detection.ejections_active" }),
  };
}

/** Of the tries since the interval began. */
class SuccessRate {
  total = 0;
  successes = 0;
  /** Of the last whole interval, in percent; -1 = too few tries. */
  percent = -1;

  count(success: boolean): void {
    this.total += 1;
    if (success) this.successes += 1;
  }

  begin(): void {
    this.total = 0;
    this.successes = 0;
  }
}

/** What a detector remembers of a host. */
export class HostOutlierState {
  readonly #failuresInARow: Record<ConsecutiveCause, number> = {
    consecutive_5xx: 0,
    consecutive_gateway_failure: 0,
    consecutive_local_origin_failure: 0,
  };
  readonly externalRate = new SuccessRate();
  readonly localOriginRate = new SuccessRate();
  ejectedAtMs = 0;
  ejectionsInARow = 0;
  jitterMs = 0;

  /** True when the limit has just been reached. */
  fails(cause: ConsecutiveCause, limit: number): boolean {
    this.#failuresInARow[cause] += 1;
    return this.#failuresInARow[cause] === limit;
  }

  forgive(cause: ConsecutiveCause): void {
    this.#failuresInARow[cause] = 0;
  }
}

export interface OutlierDetectionOptions {
  readonly clusterName: string;
  readonly settings: OutlierDetectionSettings;
  readonly stats: OutlierStats;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  /** A host was ejected or is back. */
  readonly onChange: () => void;
}

export class OutlierDetection {
  readonly #options: OutlierDetectionOptions;
  #hosts: readonly Host[] = [];
  #ejectedCount = 0;
  #timer: unknown = undefined;

  constructor(options: OutlierDetectionOptions) {
    this.#options = options;
  }

  /** Follows the cluster's endpoints: hosts that stay keep their state, those that left count no more. */
  setHosts(hosts: readonly Host[]): void {
    const kept = new Set(hosts);
    for (const host of this.#hosts) if (host.ejected && !kept.has(host)) this.#countEjected(-1);
    this.#hosts = hosts;
    if (hosts.length > 0) this.#timer ??= this.#nextInterval();
  }

  stop(): void {
    this.setHosts([]);
    if (this.#timer !== undefined) this.#options.clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  /** `status` is that of HTTP, or what a gRPC status means in HTTP. */
  onResponse(host: Host, status: number): void {
    const { consecutive } = this.#options.settings;
    const state = (host.outlier ??= new HostOutlierState());
    const failed = status >= 500;
    state.externalRate.count(!failed);
    if (!failed) {
      state.forgive("consecutive_5xx");
      state.forgive("consecutive_gateway_failure");
      return;
    }
    if (status >= 502 && status <= 504) this.#count(host, state, "consecutive_gateway_failure", consecutive);
    else state.forgive("consecutive_gateway_failure");
    this.#count(host, state, "consecutive_5xx", consecutive);
  }

  /** No answer: a connection that cannot be made or is cut, or a try that takes too long. */
  onNoResponse(host: Host, cause: "reset" | "timeout"): void {
    const { splitsLocalOrigin, consecutive } = this.#options.settings;
    if (!splitsLocalOrigin) {
      this.onResponse(host, cause === "timeout" ? 504 : 503);
      return;
    }
    const state = (host.outlier ??= new HostOutlierState());
    state.localOriginRate.count(false);
    this.#count(host, state, "consecutive_local_origin_failure", consecutive);
  }

  /** An active check finds a host well that is ejected. */
  onCheckSucceeded(host: Host): void {
    if (!host.ejected || host.outlier === undefined || !this.#options.settings.returnsCheckedHosts) return;
    this.#takeBack(host, host.outlier);
    this.#options.onChange();
  }

  onConnected(host: Host): void {
    if (!this.#options.settings.splitsLocalOrigin) return;
    const state = (host.outlier ??= new HostOutlierState());
    state.localOriginRate.count(true);
    state.forgive("consecutive_local_origin_failure");
  }

  #count(
    host: Host,
    state: HostOutlierState,
    cause: ConsecutiveCause,
    limits: OutlierDetectionSettings["consecutive"],
  ): void {
    if (!state.fails(cause, limits[cause].limit)) return;
    if (!host.ejected) this.#detect(host, state, cause, limits[cause].enforcedPercent);
    state.forgive(cause);
  }

  #detect(host: Host, state: HostOutlierState, cause: EjectionCause, enforcedPercent: number): void {
    const { settings, stats, random, clock, log, clusterName, onChange } = this.#options;
    stats[`detected_${cause}`].increment();
    const share = (100 * (this.#ejectedCount + 1)) / this.#hosts.length;
    const isAllowed = share <= settings.maxEjectionPercent || (settings.alwaysEjectOneHost && this.#ejectedCount === 0);
    if (!isAllowed) {
      stats.overflow.increment();
      return;
    }
    if (Math.floor(random() * 100) >= enforcedPercent) return;
    stats[`enforced_${cause}`].increment();
    stats.enforcedTotal.increment();
    state.ejectedAtMs = clock.monotonicMs();
    const { baseEjectionTimeMs, maxEjectionTimeMs, maxEjectionTimeJitterMs } = settings;
    if (state.ejectionsInARow * baseEjectionTimeMs < maxEjectionTimeMs + baseEjectionTimeMs) state.ejectionsInARow += 1;
    state.jitterMs = Math.floor(random() * (maxEjectionTimeJitterMs + 1));
    host.ejected = true;
    this.#countEjected(1);
    log.info("a host was ejected", { cluster: clusterName, host: host.addressText, cause });
    onChange();
  }

  #countEjected(change: 1 | -1): void {
    this.#ejectedCount += change;
    this.#options.stats.active.add(change);
  }

  #nextInterval(): unknown {
    const { clock, settings } = this.#options;
    return clock.setTimer(() => {
      this.#timer = this.#nextInterval();
      this.#onInterval();
    }, settings.intervalMs);
  }

  #onInterval(): void {
    const nowMs = this.#options.clock.monotonicMs();
    let changed = false;
    for (const host of this.#hosts) {
      if (host.outlier !== undefined && this.#mayReturn(host, host.outlier, nowMs)) changed = true;
    }
    if (changed) this.#options.onChange();
    const { successRate, failurePercentage } = this.#options.settings;
    this.#judgeRates("externalRate", "success_rate", "failure_percentage", [
      successRate.enforcedPercent,
      failurePercentage.enforcedPercent,
    ]);
    this.#judgeRates("localOriginRate", "local_origin_success_rate", "local_origin_failure_percentage", [
      successRate.enforcedPercentLocalOrigin,
      failurePercentage.enforcedPercentLocalOrigin,
    ]);
  }

  #mayReturn(host: Host, state: HostOutlierState, nowMs: number): boolean {
    if (!host.ejected) {
      if (state.ejectionsInARow > 0) state.ejectionsInARow -= 1;
      return false;
    }
    const { baseEjectionTimeMs, maxEjectionTimeMs } = this.#options.settings;
    const ejectedForMs = Math.min(baseEjectionTimeMs * state.ejectionsInARow, maxEjectionTimeMs) + state.jitterMs;
    if (nowMs - state.ejectedAtMs < ejectedForMs) return false;
    this.#takeBack(host, state);
    return true;
  }

  #takeBack(host: Host, state: HostOutlierState): void {
    host.ejected = false;
    this.#countEjected(-1);
    for (const cause of Object.keys(this.#options.settings.consecutive) as ConsecutiveCause[]) state.forgive(cause);
    const { log, clusterName } = this.#options;
    log.info("an ejected host is back", { cluster: clusterName, host: host.addressText });
  }

  /**
   * Compares what the interval has shown of the hosts with one another, and with the limit (Envoy:
   * processSuccessRateEjections).
   */
  #judgeRates(
    which: "externalRate" | "localOriginRate",
    byRate: RateCause,
    byPercentage: RateCause,
    [ratePercent, percentagePercent]: readonly [number, number],
  ): void {
    const { successRate, failurePercentage } = this.#options.settings;
    const leastVolume = Math.min(successRate.requestVolume, failurePercentage.requestVolume);
    const byVolume: { readonly host: Host; readonly state: HostOutlierState; readonly total: number }[] = [];
    for (const host of this.#hosts) {
      const state = host.outlier;
      if (state === undefined) continue;
      const rate = state[which];
      rate.percent = -1;
      if (!host.ejected && rate.total > 0 && rate.total >= leastVolume) {
        rate.percent = (100 * rate.successes) / rate.total;
        byVolume.push({ host, state, total: rate.total });
      }
      rate.begin();
    }
    if (this.#hosts.length < Math.min(successRate.minimumHosts, failurePercentage.minimumHosts)) return;
    const comparable = byVolume.filter(({ total }) => total >= successRate.requestVolume);
    if (comparable.length > 0 && comparable.length >= successRate.minimumHosts) {
      const percents = comparable.map(({ state }) => state[which].percent);
      const mean = percents.reduce((sum, percent) => sum + percent, 0) / percents.length;
      const variance = percents.reduce((sum, percent) => sum + (percent - mean) ** 2, 0) / percents.length;
      const threshold = mean - (successRate.stdevFactor / 1000) * Math.sqrt(variance);
      for (const { host, state } of comparable) {
        if (state[which].percent < threshold) this.#detect(host, state, byRate, ratePercent);
      }
    }
    const measured = byVolume.filter(({ total }) => total >= failurePercentage.requestVolume);
    if (measured.length === 0 || measured.length < failurePercentage.minimumHosts) return;
    for (const { host, state } of measured) {
      if (host.ejected || 100 - state[which].percent < failurePercentage.thresholdPercent) continue;
      this.#detect(host, state, byPercentage, percentagePercent);
    }
  }
}
