// Breaks up long work on a push: after a fraction of a millisecond the event loop gets to serve requests. A request
// waits for a slice at each of the few turns that it takes, so that 2 ms a slice tripled the p99 of requests during a
// push.
import { setImmediate as nextTurn } from "node:timers/promises";

const sliceMs = 0.1;
/**
 * Where a turn's requests take longer, the work gets this share of the time: a proxy at its limit would otherwise take
 * its configuration up after many seconds.
 */
const shareOfBusyTime = 0.2;
const maxSliceMs = 4;

let beforeSlice = (): void => undefined;

/**
 * There is one event loop, and so one callback: what its round has written is to leave before the round's slice. The
 * end of the round, an immediate of the same check phase, comes after it: each answer waited a slice longer.
 */
export function beforeEachSlice(callback: () => void): void {
  beforeSlice = callback;
}

export class Pauses {
  #until = performance.now() + sliceMs;

  /** The slice is over. */
  get isDue(): boolean {
    return performance.now() >= this.#until;
  }

  async take(): Promise<void> {
    const pausedAtMs = performance.now();
    await nextTurn();
    beforeSlice();
    const nowMs = performance.now();
    this.#until = nowMs + Math.min(maxSliceMs, Math.max(sliceMs, (nowMs - pausedAtMs) * shareOfBusyTime));
  }

  /** Returns at once while the slice lasts. */
  async takeIfDue(): Promise<void> {
    if (this.isDue) await this.take();
  }
}
