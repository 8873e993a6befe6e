// The timer wheel on a clock that the test moves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../testing/manual-clock.ts";
import { seededRandom } from "../testing/random-requests.ts";
import { CallbackTimer, tickMs, TimerWheel } from "./timer-wheel.ts";
import { Turn } from "./turn.ts";

function setUp(): { clock: ManualClock; wheel: TimerWheel } {
  const clock = new ManualClock();
  return { clock, wheel: new TimerWheel(clock, new Turn(clock)) };
}

test("timers fire once, never early and at most a tick late", () => {
  const { clock, wheel } = setUp();
  const random = seededRandom(3);
  const late: number[] = [];
  const delays = Array.from({ length: 500 }, () => Math.floor(random() * 40_000));
  for (const delayMs of delays) {
    const dueMs = clock.monotonicMs() + delayMs;
    wheel.arm(new CallbackTimer(() => late.push(clock.monotonicMs() - dueMs)), delayMs, clock.monotonicMs());
  }
  for (let passedMs = 0; passedMs < 41_000; passedMs += 1) clock.advance(1);
  assert.equal(late.length, delays.length);
  assert.ok(
    late.every((byMs) => byMs >= 0 && byMs <= tickMs),
    String(Math.max(...late)),
  );
  assert.equal(wheel.armedCount, 0);
});

test("a long sleep fires everything that became due meanwhile", () => {
  const { clock, wheel } = setUp();
  const fired: number[] = [];
  for (const delayMs of [5, 9000, 30_000, 90_000]) {
    wheel.arm(new CallbackTimer(() => fired.push(delayMs)), delayMs, clock.monotonicMs());
  }
  clock.advance(60_000);
  assert.deepEqual(fired, [5, 9000, 30_000]);
  clock.advance(60_000);
  assert.deepEqual(fired, [5, 9000, 30_000, 90_000]);
});

test("a disarmed timer does not fire, a re-armed one at its new time only", () => {
  const { clock, wheel } = setUp();
  let count = 0;
  const timer = new CallbackTimer(() => (count += 1));
  wheel.arm(timer, 100, clock.monotonicMs());
  wheel.disarm(timer);
  clock.advance(1000);
  assert.equal(count, 0);
  wheel.arm(timer, 100, clock.monotonicMs());
  wheel.arm(timer, 500, clock.monotonicMs());
  clock.advance(400);
  assert.equal(count, 0);
  clock.advance(200);
  assert.equal(count, 1);
});

test("timers may arm and disarm others when they fire", () => {
  const { clock, wheel } = setUp();
  const fired: string[] = [];
  const second = new CallbackTimer(() => fired.push("second"));
  const first = new CallbackTimer(() => {
    fired.push("first");
    wheel.disarm(second);
    wheel.arm(new CallbackTimer(() => fired.push("third")), 10, clock.monotonicMs());
  });
  wheel.arm(first, 100, clock.monotonicMs());
  wheel.arm(second, 100, clock.monotonicMs());
  clock.advance(200);
  assert.deepEqual(fired, ["first", "third"]);
});

test("a time-out of weeks asks the platform for no longer sleep than its timers can count", () => {
  const delaysMs: number[] = [];
  class RecordingClock extends ManualClock {
    override setTimer(callback: () => void, delayMs: number): unknown {
      delaysMs.push(delayMs);
      return super.setTimer(callback, delayMs);
    }
  }
  const clock = new RecordingClock();
  const wheel = new TimerWheel(clock, new Turn(clock));
  wheel.arm(new CallbackTimer(() => undefined), 1000 * 3_600_000, clock.monotonicMs());
  assert.ok(
    delaysMs.every((delayMs) => delayMs < 2 ** 31),
    String(delaysMs),
  );
});
