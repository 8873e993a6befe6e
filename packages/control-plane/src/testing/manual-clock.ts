// Time that a test moves, for what waits by `Clock`.
import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "@tulle/xds";

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

export class ManualClock implements Clock {
  #nowMs = 0;
  #timers: readonly Timer[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers = [...this.#timers, timer];
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  /** In how many milliseconds each is due. */
  get waiting(): readonly number[] {
    return this.#timers.map(({ atMs }) => atMs - this.#nowMs);
  }

  /** Runs what is due next, and lets the fetches that it began end. */
  async next(): Promise<void> {
    const due = this.#first();
    assert.ok(due, "nothing waits");
    this.#run(due);
    await nextTurn();
  }

  /** Runs all that is due until then. */
  advanceTo(nowMs: number): void {
    for (let due = this.#first(); due !== undefined && due.atMs <= nowMs; due = this.#first()) this.#run(due);
    this.#nowMs = nowMs;
  }

  #first(): Timer | undefined {
    return this.#timers.toSorted((a, b) => a.atMs - b.atMs)[0];
  }

  #run(due: Timer): void {
    this.#timers = this.#timers.filter((timer) => timer !== due);
    this.#nowMs = due.atMs;
    due.callback();
  }
}
