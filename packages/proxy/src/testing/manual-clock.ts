// A clock that stands still until a test moves it.
import type { Clock } from "../worker/clock.ts";

interface Waiting {
  readonly dueMs: number;
  readonly callback: () => void;
}

export class ManualClock implements Clock {
  #nowMs = 1000;
  readonly #waiting = new Set<Waiting>();

  wallMs(): number {
    return 1_700_000_000_000 + this.#nowMs;
  }

  wallAtMs(monotonicMs: number): number {
    return 1_700_000_000_000 + monotonicMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  setTimer(callback: () => void, delayMs: number): unknown {
    const entry: Waiting = { dueMs: this.#nowMs + delayMs, callback };
    this.#waiting.add(entry);
    return entry;
  }

  clearTimer(handle: unknown): void {
    this.#waiting.delete(handle as Waiting);
  }

  atRoundEnd(callback: () => void): void {
    callback();
  }

  /** Moves time on, firing what becomes due in its order. */
  advance(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    for (;;) {
      const next = [...this.#waiting].filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0];
      if (next === undefined) break;
      this.#waiting.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.callback();
    }
    this.#nowMs = endMs;
  }
}
