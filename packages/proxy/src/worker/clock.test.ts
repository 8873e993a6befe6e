// Waits that are longer than Node's timers can be.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "./clock.ts";

test("a timer of thirty days does not fire at once", async () => {
  const early: number[] = [];
  const days = [24, 25, 30, 36_500];
  const timers = days.map((each) => systemClock.setTimer(() => early.push(each), each * 86_400_000));
  // One that is due later than a millisecond fires after those that are due by then. It alone keeps the process.
  await new Promise((resolve) => setTimeout(resolve, 20));
  for (const timer of timers) systemClock.clearTimer(timer);
  assert.deepEqual(early, []);
});
