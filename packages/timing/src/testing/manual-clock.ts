// Time for tests of whatever waits by `Clock`: it stands until a test lets it pass.
import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../clock.ts";

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

export class ManualClock implements Clock {
  #nowMs: number;
  #timers: readonly Timer[] = [];

  constructor(nowMs = 0) {
    this.#nowMs = nowMs;
  }

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

  /** Runs what is due next, and lets what it began in this process end. */
  async next(): Promise<void> {
    const due = this.#first();
    assert.ok(due, "nothing waits");
    this.#run(due);
    await nextTurn();
  }

  /** Goes on by `ms`, from timer to timer, those included that are set on the way. */
  pass(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (let due = this.#first(); due !== undefined && due.atMs <= endMs; due = this.#first()) this.#run(due);
    this.#nowMs = endMs;
  }

  #first(): Timer | undefined {
    return this.#timers.toSorted((a, b) => a.atMs - b.atMs)[0];
  }

  #run(due: Timer): void {
    this.#timers = this.#timers.filter((timer) => timer !== due);
    this.#nowMs = Math.max(this.#nowMs, due.atMs);
    due.callback();
  }
}
