// The wall clock with fractions of a millisecond, with clocks that a test sets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClockSources, WallClock } from "./wall-clock.ts";

/** Clocks that a test sets; each reading of the monotonic one may take its time. */
class Clocks implements ClockSources {
  nowMs = 1000;
  offsetMs = 1_700_000_000_000.25;
  readings = 0;
  /** What the next readings of the wall clock take. */
  delays: number[] = [];

  monotonicMs(): number {
    return this.nowMs;
  }

  coarseMs(): number {
    return Math.floor(this.nowMs + this.offsetMs);
  }

  exactMs(): number {
    this.readings += 1;
    const exactMs = this.nowMs + this.offsetMs;
    this.nowMs += this.delays.shift() ?? 0;
    return exactMs;
  }
}

test("times have fractions, and the wall clock is read once a second", () => {
  const clocks = new Clocks();
  const wall = new WallClock(clocks);
  assert.equal(wall.atMs(1000), 1_700_000_001_000.25);
  clocks.nowMs = 1999.5;
  assert.equal(wall.atMs(1999.5), 1_700_000_001_999.75);
  assert.equal(clocks.readings, 1);
  // Slewed meanwhile.
  clocks.offsetMs += 0.25;
  clocks.nowMs = 2000;
  assert.equal(wall.atMs(2000), 1_700_000_002_000.5);
  assert.equal(clocks.readings, 2);
});

for (const { name, byMs } of [
  { name: "forward, or the machine has slept", byMs: 3_600_000 },
  { name: "back", byMs: -3_600_000 },
]) {
  test(`a wall clock that was set ${name} is believed at once`, () => {
    const clocks = new Clocks();
    const wall = new WallClock(clocks);
    wall.atMs(1000);
    clocks.offsetMs += byMs;
    assert.equal(wall.atMs(1000), 1_700_000_001_000.25 + byMs);
  });
}

test("a reading during which the thread was held up is not the one that counts", () => {
  const clocks = new Clocks();
  clocks.delays = [40, 0, 0];
  const wall = new WallClock(clocks);
  assert.equal(wall.atMs(1000), 1_700_000_001_000.25);
  assert.equal(clocks.readings, 2);
});

test("a machine that holds the thread up each time is asked three times", () => {
  const clocks = new Clocks();
  clocks.delays = [40, 2, 40];
  const wall = new WallClock(clocks);
  assert.ok(Math.abs(wall.atMs(1000) - 1_700_000_001_000.25) <= 1);
  assert.equal(clocks.readings, 3);
});

test("the machine's own clock has fractions of a millisecond, and is Date's", () => {
  const wall = new WallClock();
  const before = Date.now();
  const times = Array.from({ length: 100 }, () => wall.atMs(performance.now()));
  const after = Date.now();
  assert.ok(times[0]! >= before - 1 && times.at(-1)! <= after + 2, `${before} ${times[0]} ${times.at(-1)} ${after}`);
  assert.ok(times.some((time) => time % 1 !== 0));
});
