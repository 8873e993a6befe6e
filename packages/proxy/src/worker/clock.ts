// The clock and the timers of the data path. Everything that waits does so here, so that a test drives time by hand.
import { WallClock } from "./wall-clock.ts";

export interface Clock {
  /** Wall clock in milliseconds since 1970. */
  wallMs(): number;
  /** The same with fractions, at a time of the monotonic clock that is not long ago. */
  wallAtMs(monotonicMs: number): number;
  /** Monotonic milliseconds with fractions. */
  monotonicMs(): number;
  /** Calls back once after `delayMs`; returns what `clearTimer` takes. */
  setTimer(callback: () => void, delayMs: number): unknown;
  clearTimer(handle: unknown): void;
  /**
   * Calls back once the event loop has looked at everything that is ready now; a clock that is driven by hand does so
   * at once.
   */
  atRoundEnd(callback: () => void): void;
}

const wallClock = new WallClock();

/** A timer of Node's that is to wait for longer waits for a millisecond. */
const longestWaitMs = 2 ** 31 - 1;

/** The machine's clock. Its timers do not keep the process alive: sockets do. */
export const systemClock: Clock = {
  wallMs: Date.now,
  wallAtMs: (monotonicMs) => wallClock.atMs(monotonicMs),
  monotonicMs: () => performance.now(),
  setTimer: (callback, delayMs) => setTimeout(callback, Math.min(delayMs, longestWaitMs)).unref(),
  clearTimer: (handle) => clearTimeout(handle as NodeJS.Timeout),
  atRoundEnd: (callback) => void setImmediate(callback),
};
