// Thresholds and pauses of probes, on a clock of the test's own.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startProbeLoop, timingOf, type CheckResult, type ProbeTiming } from "./probe-loop.ts";

/** Runs a loop over scripted answers; the last one repeats. Gives the verdicts told and a way to let time pass. */
function run(
  t: TestContext,
  answers: readonly CheckResult[],
  timing: Partial<ProbeTiming> = {},
): { verdicts: boolean[]; asked: () => number; pass: (timeMs: number) => Promise<void>; stop: () => void } {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let count = 0;
  const verdicts: boolean[] = [];
  const check = (): Promise<CheckResult> => {
    count += 1;
    return Promise.resolve(answers[Math.min(count, answers.length) - 1]!);
  };
  const whole = { initialDelayMs: 0, periodMs: 10_000, successThreshold: 1, failureThreshold: 3, ...timing };
  const loop = startProbeLoop(check, whole, (well) => verdicts.push(well));
  const pass = async (timeMs: number): Promise<void> => {
    for (let left = timeMs; left > 0; left -= 10) {
      t.mock.timers.tick(10);
      await Promise.resolve();
      await Promise.resolve();
    }
  };
  return { verdicts, asked: () => count, pass, stop: () => loop.stop() };
}

test("a program that starts quickly is found quickly, then asked once a period", async (t) => {
  const { verdicts, asked, pass } = run(t, [false, false, true]);
  await pass(200);
  assert.deepEqual(verdicts, [true]);
  assert.equal(asked(), 3);
  await pass(9_000);
  assert.equal(asked(), 3);
  await pass(2_000);
  assert.equal(asked(), 4);
});

test("one failure does not change a verdict, three in a row do", async (t) => {
  const { verdicts, pass } = run(t, [true, false, true, false, false, false, true], { periodMs: 1000 });
  await pass(20_000);
  assert.deepEqual(verdicts, [true, false, true]);
});

test("an answer of somebody else changes it at once, and back again", async (t) => {
  const { verdicts, pass } = run(t, [true, "foreign", "foreign", true], { periodMs: 1000 });
  await pass(1100);
  assert.deepEqual(verdicts, [true, false]);
  await pass(3000);
  assert.deepEqual(verdicts, [true, false, false, true]);
});

test("each further round of failures is told again", async (t) => {
  const { verdicts, pass } = run(t, [false], { periodMs: 1000, failureThreshold: 2 });
  await pass(10_000);
  assert.ok(verdicts.length >= 3);
  assert.ok(verdicts.every((well) => !well));
});

test("a slow start is no failure before its time", async (t) => {
  const { verdicts, asked, pass } = run(t, [false], { periodMs: 1000, failureThreshold: 3 });
  await pass(1900);
  assert.ok(asked() > 5);
  assert.deepEqual(verdicts, []);
  await pass(1500);
  assert.deepEqual(verdicts, [false]);
});

test("nothing is asked before the initial delay or after the end", async (t) => {
  const { asked, pass, stop } = run(t, [true], { initialDelayMs: 5000, periodMs: 1000 });
  await pass(4900);
  assert.equal(asked(), 0);
  await pass(200);
  assert.equal(asked(), 1);
  stop();
  await pass(5000);
  assert.equal(asked(), 1);
});

test("what a probe leaves out is as in Kubernetes", () => {
  assert.deepEqual(timingOf({ periodSeconds: 0 }), {
    initialDelayMs: 0,
    periodMs: 10_000,
    successThreshold: 1,
    failureThreshold: 3,
  });
});
