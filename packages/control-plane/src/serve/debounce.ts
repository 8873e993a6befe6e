// Gathers changes that come close together into one: runs once it has been quiet for a while, and at the latest after a
// limit, so that a steady stream of changes is not put off for ever (Istio: PILOT_DEBOUNCE_AFTER and
// PILOT_DEBOUNCE_MAX). After each run it rests for as long as that took: whoever changes something all the time, as a
// pod does that fails and recovers, leaves half of the time to everybody else.
import type { Clock } from "@tulle/timing";

export interface DebounceTimes {
  /** How long nothing may have come. */
  readonly quietMs: number;
  /** Longest wait after the first change. */
  readonly maxMs: number;
}

/** Istio waits 100 ms; a person at a laptop sees that, and one machine has fewer changes to gather. */
export const defaultDebounce: DebounceTimes = { quietMs: 20, maxMs: 10_000 };

export class Debounce {
  readonly #times: DebounceTimes;
  readonly #clock: Clock;
  readonly #run: () => void;
  #firstMs: number | undefined;
  /** Nothing runs before. */
  #restsUntilMs = -Infinity;
  #cancel: (() => void) | undefined;

  constructor(times: DebounceTimes, clock: Clock, run: () => void) {
    this.#times = times;
    this.#clock = clock;
    this.#run = run;
  }

  /** Something has changed. */
  signal(): void {
    const nowMs = this.#clock.nowMs();
    this.#firstMs ??= nowMs;
    this.#cancel?.();
    const leftMs = this.#firstMs + this.#times.maxMs - nowMs;
    const delayMs = Math.max(0, Math.min(this.#times.quietMs, leftMs), this.#restsUntilMs - nowMs);
    this.#cancel = this.#clock.after(delayMs, () => this.#runNow());
  }

  #runNow(): void {
    this.#firstMs = undefined;
    this.#cancel = undefined;
    const startMs = this.#clock.nowMs();
    this.#run();
    const endMs = this.#clock.nowMs();
    this.#restsUntilMs = endMs + Math.min(endMs - startMs, this.#times.maxMs);
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#firstMs = undefined;
  }
}
