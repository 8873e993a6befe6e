// Time for tests: it stands until a test lets it pass.
import type { Clock } from "@tulle/xds";

export class TestClock implements Clock {
  #nowMs: number;
  #timers: { readonly atMs: number; readonly callback: () => void }[] = [];

  constructor(nowMs = 0) {
    this.#nowMs = nowMs;
  }

  /** Timers that are set. */
  get pending(): number {
    return this.#timers.length;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.push(timer);
    return () => void (this.#timers = this.#timers.filter((other) => other !== timer));
  }

  /** Goes on by `ms`, from timer to timer, those included that are set on the way. */
  pass(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const [next] = this.#timers.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.callback();
    }
    this.#nowMs = endMs;
  }
}
