// Idle series go: at each rotation every series that requests label is marked, and after a time of grace those to which
// nothing was added meanwhile are given up (Istio: `rotation_interval`, `graceful_deletion_interval`, whose old scope
// keeps what is asked for again). One for a registry, since all filters of a proxy share its series.
import type { MetricRegistry } from "@tulle/telemetry";
import type { Clock } from "../../../worker/clock.ts";

/** Istio rotates where it is told to alone; without an end, what strangers made up would fill the limits for ever. */
const defaultRotationMs = 86_400_000;
/** Istio's: longer than anybody waits between two scrapes. */
const defaultGraceMs = 300_000;
/** Istio's least. */
const minGraceMs = 1000;

export class Rotation {
  /** Changes whenever handles that were kept have to be asked for again. */
  generation = 0;
  readonly #metrics: WeakRef<MetricRegistry>;
  readonly #clock: Clock;
  #intervalMs = -1;
  #graceMs = defaultGraceMs;
  #timer: unknown = undefined;

  constructor(metrics: MetricRegistry, clock: Clock) {
    this.#metrics = new WeakRef(metrics);
    this.#clock = clock;
  }

  /** The last configuration holds; 0 = never. */
  configure(intervalMs = defaultRotationMs, graceMs = defaultGraceMs): void {
    this.#graceMs = Math.max(minGraceMs, graceMs);
    if (intervalMs === this.#intervalMs) return;
    this.#intervalMs = intervalMs;
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    if (intervalMs > 0) this.#timer = this.#clock.setTimer(() => this.#rotate(), intervalMs);
  }

  #rotate(): void {
    const metrics = this.#metrics.deref();
    if (metrics === undefined) return;
    metrics.markIdle();
    this.#timer = this.#clock.setTimer(() => {
      metrics.dropIdle();
      this.generation += 1;
      const restMs = Math.max(minGraceMs, this.#intervalMs - this.#graceMs);
      this.#timer = this.#clock.setTimer(() => this.#rotate(), restMs);
    }, this.#graceMs);
  }
}

const rotations = new WeakMap<MetricRegistry, Rotation>();

export function rotationOf(metrics: MetricRegistry, clock: Clock): Rotation {
  let rotation = rotations.get(metrics);
  if (rotation === undefined) {
    rotation = new Rotation(metrics, clock);
    rotations.set(metrics, rotation);
  }
  return rotation;
}
