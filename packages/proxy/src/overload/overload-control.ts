// Looks at the process's memory at an interval and tells the data path what to give up (Envoy: OverloadManager).
// Pressure is the share of a limit that is used; an action's triggers turn it into a value from 0 (nothing) to 1
// (everything).
import type { Gauge, Histogram, Logger, MetricRegistry } from "@tulle/telemetry";
import type { Clock } from "../worker/clock.ts";
import type { OverloadState } from "../worker/overload-state.ts";

/** By Envoy's names without `envoy.overload_actions.`; the first four have an effect here. */
export type OverloadActionName =
  | "stop_accepting_requests"
  | "disable_http_keepalive"
  | "stop_accepting_connections"
  | "reject_incoming_connections";

export type OverloadTrigger =
  | { readonly type: "threshold"; readonly value: number }
  | { readonly type: "scaled"; readonly scalingFrom: number; readonly saturatedFrom: number };

export interface OverloadAction {
  readonly name: OverloadActionName;
  /** Any of them; the highest value counts. */
  readonly triggers: readonly OverloadTrigger[];
}

export interface OverloadSettings {
  readonly refreshIntervalMs: number;
  /** Resident memory that counts as pressure 1; undefined = memory is not looked at. */
  readonly maxMemoryBytes: number | undefined;
  /** Undefined = no limit. */
  readonly maxConnections: number | undefined;
  readonly actions: readonly OverloadAction[];
}

export interface OverloadControlOptions {
  readonly settings: OverloadSettings;
  readonly state: OverloadState;
  readonly metrics: MetricRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  /** Resident memory of the process in bytes. */
  readonly memoryBytes: () => number;
}

/** How far the action goes at this pressure, from 0 to 1. */
export function triggerValue(trigger: OverloadTrigger, pressure: number): number {
  if (trigger.type === "threshold") return pressure >= trigger.value ? 1 : 0;
  const { scalingFrom, saturatedFrom } = trigger;
  if (pressure <= scalingFrom) return 0;
  return pressure >= saturatedFrom ? 1 : (pressure - scalingFrom) / (saturatedFrom - scalingFrom);
}

export class OverloadControl {
  readonly #options: OverloadControlOptions;
  readonly #pressure: Gauge;
  /** From one look to the next. */
  readonly #lookDelayMs: Histogram;
  #lookedAtMs = 0;
  readonly #gauges: ReadonlyMap<OverloadActionName, { readonly active: Gauge; readonly scalePercent: Gauge }>;
  #timer: unknown = undefined;

  constructor(options: OverloadControlOptions) {
    this.#options = options;
    const { settings, metrics, state } = options;
    state.maxConnections = settings.maxConnections ?? Infinity;
    const gauge = (name: string, stat: string): Gauge =>
      metrics.gauge({
        name: `envoy_overload_${name.replaceAll(".", "_")}_${stat}`,
        labels: {},
        statName: `overload.${name}.${stat}`,
      });
    this.#pressure = gauge("envoy.resource_monitors.fixed_heap", "pressure");
    this.#lookDelayMs = metrics.histogram({
      name: "envoy_overload_refresh_interval_delay",
      statName: "overload.refresh_interval_delay",
    });
    this.#gauges = new Map(
      settings.actions.map(({ name }) => [
        name,
        {
          active: gauge(`envoy.overload_actions.${name}`, "active"),
          scalePercent: gauge(`envoy.overload_actions.${name}`, "scale_percent"),
        },
      ]),
    );
  }

  start(): void {
    if (this.#options.settings.maxMemoryBytes === undefined || this.#options.settings.actions.length === 0) return;
    this.#lookedAtMs = this.#options.clock.monotonicMs();
    this.#look();
  }

  stop(): void {
    if (this.#timer !== undefined) this.#options.clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const { settings, clock, memoryBytes } = this.#options;
    const pressure = memoryBytes() / settings.maxMemoryBytes!;
    this.#pressure.set(Math.round(pressure * 100));
    for (const { name, triggers } of settings.actions) {
      this.#apply(name, Math.max(...triggers.map((trigger) => triggerValue(trigger, pressure))));
    }
    this.#timer = clock.setTimer(() => {
      const nowMs = clock.monotonicMs();
      this.#lookDelayMs.record(nowMs - this.#lookedAtMs);
      this.#lookedAtMs = nowMs;
      this.#look();
    }, settings.refreshIntervalMs);
  }

  #apply(name: OverloadActionName, value: number): void {
    const { state, log } = this.#options;
    const gauges = this.#gauges.get(name)!;
    const wasActive = gauges.active.value === 1;
    gauges.active.set(value >= 1 ? 1 : 0);
    gauges.scalePercent.set(Math.round(value * 100));
    if (value >= 1 && !wasActive) log.warning("overload begins", { action: name });
    else if (value < 1 && wasActive) log.warning("overload is over", { action: name });
    switch (name) {
      case "stop_accepting_requests":
        state.refusedRequests = value;
        return;
      case "disable_http_keepalive":
        state.closedConnections = value;
        return;
      case "reject_incoming_connections":
        state.refusedConnections = value;
        return;
      case "stop_accepting_connections":
        state.acceptsConnections = value < 1;
    }
  }
}
