// The checks of one host, one after another: when the next is due, and what their results make of the host (Envoy:
// `ActiveHealthCheckSession`).
import type { Clock } from "../../worker/clock.ts";
import type { Host } from "../cluster.ts";
import type { ActiveHealth } from "../host-health.ts";
import type { CheckQueue, QueuedCheck } from "./check-queue.ts";
import type { HealthCheckEvents } from "./health-check-events.ts";
import type { HealthCheckSettings } from "./health-check-settings.ts";
import type { HealthCheckStats } from "./health-check-stats.ts";
import { type CheckResult, networkTimeout, passiveFailure, type Probe } from "./probe.ts";

/** `pending`: it takes more results like this one. */
export type Transition = "unchanged" | "pending" | "changed";

export interface SessionSurroundings {
  readonly settings: HealthCheckSettings;
  readonly stats: HealthCheckStats;
  readonly events: HealthCheckEvents;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  /** A request has been sent to the cluster. */
  readonly hasTraffic: () => boolean;
  /** After each result. */
  readonly onResult: (session: HealthCheckSession, transition: Transition, ok: boolean) => void;
}

export class HealthCheckSession implements QueuedCheck {
  readonly host: Host;
  readonly #health: ActiveHealth;
  readonly #around: SessionSurroundings;
  readonly #queue: CheckQueue;
  readonly #probe: Probe;
  #timer: unknown = undefined;
  #isFirst = true;
  #isStopped = false;
  #successes = 0;
  #failures = 0;

  constructor(
    host: Host,
    health: ActiveHealth,
    around: SessionSurroundings,
    queue: CheckQueue,
    makeProbe: (onResult: (result: CheckResult) => void) => Probe,
  ) {
    this.host = host;
    this.#health = health;
    this.#around = around;
    this.#queue = queue;
    this.#probe = makeProbe((result) => this.#take(result));
  }

  /** It has had a result. */
  get isChecked(): boolean {
    return !this.#isFirst;
  }

  start(): void {
    const { stats, settings } = this.#around;
    if (!this.#health.hasFailed) stats.healthy.add(1);
    if (this.#health.isDegraded) stats.degraded.add(1);
    if (settings.initialJitterMs === 0) this.#queue.enter(this);
    else this.#armNext(this.#jittered(0, settings.initialJitterMs));
  }

  /** The host is gone, or its cluster. */
  stop(): void {
    this.#isStopped = true;
    const { clock, stats } = this.#around;
    clock.clearTimer(this.#timer);
    this.#queue.leave(this);
    this.#probe.close();
    if (!this.#health.hasFailed) stats.healthy.add(-1);
    if (this.#health.isDegraded) stats.degraded.add(-1);
  }

  /** The host itself has said to a request that it fails. The next check comes when it would have come. */
  failNow(): void {
    this.#health.isExcluded = true;
    this.#judge(passiveFailure);
  }

  beginCheck(): void {
    const { stats, settings } = this.#around;
    stats.attempt.increment();
    this.#arm(settings.timeoutMs, () => {
      this.#probe.giveUp();
      this.#take(networkTimeout);
    });
    this.#probe.begin();
  }

  #take(result: CheckResult): void {
    if (this.#isStopped) return;
    this.#around.clock.clearTimer(this.#timer);
    this.#queue.leave(this);
    const transition = this.#judge(result);
    // Whoever heard of it may have dropped the host.
    if (this.#isStopped) return;
    this.#armNext(this.#untilNextMs(result.ok, transition));
  }

  #judge(result: CheckResult): Transition {
    const isFirst = this.#isFirst;
    let transition = result.ok ? this.#succeed(result.isDegraded, isFirst) : this.#fail(result, isFirst);
    if (this.#health.isPending) {
      this.#health.isPending = false;
      transition = "changed";
    }
    this.#isFirst = false;
    this.#around.onResult(this, transition, result.ok);
    return transition;
  }

  #succeed(isDegraded: boolean, isFirst: boolean): Transition {
    const { stats, settings, events } = this.#around;
    const health = this.#health;
    let transition: Transition = "unchanged";
    this.#failures = 0;
    stats.success.increment();
    if (health.hasFailed) {
      this.#successes += 1;
      transition = isFirst || this.#successes === settings.healthyThreshold ? "changed" : "pending";
    }
    if (transition === "changed") {
      health.hasFailed = false;
      health.hasTimedOut = false;
      health.isExcluded = false;
      stats.healthy.add(1);
      events.onHealthy(this.host, isFirst);
    } else if (settings.alwaysLogsSuccess) {
      events.onSuccess(this.host);
    }
    if (isDegraded !== health.isDegraded) {
      health.isDegraded = isDegraded;
      stats.degraded.add(isDegraded ? 1 : -1);
      events.onDegraded(this.host, isDegraded);
      if (transition === "unchanged") transition = "changed";
    }
    return transition;
  }

  #fail(result: Extract<CheckResult, { ok: false }>, isFirst: boolean): Transition {
    const { failure, isRetriable, isExcluded, isTooLong } = result;
    const { stats, settings, events } = this.#around;
    const health = this.#health;
    let transition: Transition = "unchanged";
    this.#successes = 0;
    if (isExcluded) health.isExcluded = true;
    if (!health.hasFailed) {
      if (isRetriable) this.#failures += 1;
      transition = !isRetriable || this.#failures === settings.unhealthyThreshold ? "changed" : "pending";
    }
    if (transition === "changed") {
      health.hasFailed = true;
      stats.healthy.add(-1);
      events.onUnhealthy(this.host, failure);
    }
    health.hasTimedOut = failure === "network_timeout" && health.hasFailed;
    if (isFirst || settings.alwaysLogsFailures) events.onFailure(this.host, failure, isFirst);
    stats.failure.increment();
    if (isTooLong === true) stats.answerTooLong.increment();
    if (failure === "passive") stats.passiveFailure.increment();
    else if (failure !== "active") stats.networkFailure.increment();
    return transition;
  }

  #untilNextMs(ok: boolean, transition: Transition): number {
    const { settings, hasTraffic } = this.#around;
    const { intervals } = settings;
    const isPending = transition === "pending";
    let ms: number;
    if (!hasTraffic()) ms = ok && !isPending ? intervals.noTrafficHealthyMs : intervals.noTrafficMs;
    else if (ok) ms = isPending ? intervals.healthyEdgeMs : intervals.healthyMs;
    else ms = isPending ? intervals.unhealthyEdgeMs : intervals.unhealthyMs;
    return this.#jittered(ms, settings.intervalJitterMs);
  }

  #jittered(ms: number, jitterMs: number): number {
    const { settings, random } = this.#around;
    const byPercent = Math.floor(random() * Math.floor((settings.intervalJitterPercent * ms) / 100));
    return Math.max(1, ms + byPercent + Math.floor(random() * jitterMs));
  }

  #armNext(delayMs: number): void {
    this.#arm(delayMs, () => this.#queue.enter(this));
  }

  #arm(delayMs: number, callback: () => void): void {
    const { turn } = this.#queue.dataPath;
    this.#timer = this.#around.clock.setTimer(() => turn.run(callback), delayMs);
  }
}
