// When gathered changes are let through, on a clock that the test moves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@tulle/timing/testing";
import { Debounce } from "./debounce.ts";

const cases: readonly { name: string; signalsMs: readonly number[]; expected: readonly number[] }[] = [
  { name: "one change waits until it is quiet", signalsMs: [0], expected: [100] },
  { name: "changes that come close together run once", signalsMs: [0, 50, 120], expected: [220] },
  { name: "a quiet time between them makes two runs", signalsMs: [0, 150], expected: [100, 250] },
  {
    name: "a steady stream is let through after the limit",
    signalsMs: [0, 90, 180, 270, 360, 450],
    expected: [300, 550],
  },
  { name: "nothing runs without a change", signalsMs: [], expected: [] },
];

for (const { name, signalsMs, expected } of cases) {
  test(name, () => {
    const clock = new ManualClock();
    const runs: number[] = [];
    const debounce = new Debounce({ quietMs: 100, maxMs: 300 }, clock, () => runs.push(clock.nowMs()));
    for (const atMs of signalsMs) {
      clock.pass(atMs - clock.nowMs());
      debounce.signal();
    }
    clock.pass(2000);
    assert.deepEqual(runs, expected);
  });
}

test("a closed one runs no more", () => {
  const clock = new ManualClock();
  const debounce = new Debounce({ quietMs: 100, maxMs: 300 }, clock, () => assert.fail("it ran"));
  debounce.signal();
  debounce.close();
  clock.pass(1000);
});

test("a run that takes long is followed by as long a rest, however many changes come", () => {
  const waits = new ManualClock();
  let workedMs = 0;
  const clock = {
    nowMs: () => waits.nowMs() + workedMs,
    after: (delayMs: number, callback: () => void) => waits.after(delayMs, callback),
  };
  const runs: number[] = [];
  let tookMs = 250;
  const debounce = new Debounce({ quietMs: 20, maxMs: 1000 }, clock, () => {
    runs.push(clock.nowMs());
    workedMs += tookMs;
  });
  for (let count = 0; count < 30; count += 1, waits.pass(30)) debounce.signal();
  assert.deepEqual(runs, [20, 520, 1030, 1530], "250 ms of work and 250 of rest");
  waits.pass(1000);
  tookMs = 0;
  debounce.signal();
  waits.pass(20);
  assert.equal(runs.at(-1), clock.nowMs(), "a rest that is over holds nothing up");
});
