// Time as whoever waits takes it: handed in, so that tests decide when a time-out has come.

export interface Clock {
  /** Whole milliseconds since 1970, never going back. */
  nowMs(): number;
  /** Calls back once, after about `delayMs`; the returned function cancels. */
  after(delayMs: number, callback: () => void): () => void;
}

/** A timer of Node's that is to wait for longer waits for a millisecond. */
const longestWaitMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  // The time of day at the start plus what has passed since: setting the machine's clock moves no time-out.
  nowMs: () => Math.round(performance.timeOrigin + performance.now()),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(delayMs, longestWaitMs));
    return () => clearTimeout(timer);
  },
};
