// Time as the ADS server and client take it: handed in, so that tests decide when a time-out has come.

export interface Clock {
  /** Milliseconds; only differences count. */
  nowMs(): number;
  /** Calls back once, not before `delayMs`; the returned function cancels. */
  after(delayMs: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: Date.now,
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};
