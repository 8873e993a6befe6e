// When what was written leaves: at the end of the turn, or soon after where there was none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../testing/manual-clock.ts";
import { RoundClock } from "../testing/round-clock.ts";
import { maxGatherMs, Turn } from "./turn.ts";

test("what is written outside of a turn leaves once, though a flush begins a turn itself", async () => {
  const turn = new Turn(new ManualClock());
  const flushed: string[] = [];
  const plain = (name: string) => ({ flush: () => void flushed.push(name) });
  turn.enqueue(plain("a"));
  turn.enqueue({
    // A peer that has taken all: its stream is told so, and writes more.
    flush: () => {
      flushed.push("b");
      turn.run(() => turn.enqueue(plain("c")));
    },
  });
  turn.enqueue(plain("d"));
  assert.deepEqual(flushed, []);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(flushed, ["a", "b", "d", "c"]);
});

function setUp(): { clock: RoundClock; turn: Turn; flushed: string[]; write: (name: string) => void } {
  const clock = new RoundClock();
  const turn = new Turn(clock);
  const flushed: string[] = [];
  const write = (name: string): void => turn.run(() => turn.enqueue({ flush: () => void flushed.push(name) }));
  return { clock, turn, flushed, write };
}

test("what turns of one round write leaves at the round's end", () => {
  const { clock, flushed, write } = setUp();
  write("a");
  write("b");
  assert.deepEqual(flushed, []);
  clock.endRound();
  assert.deepEqual(flushed, ["a", "b"]);
  write("c");
  assert.deepEqual(flushed, ["a", "b"], "the next round gathers too");
  clock.endRound();
  assert.deepEqual(flushed, ["a", "b", "c"]);
});

test("what a round has written leaves before its end when it is asked for", () => {
  const { clock, turn, flushed, write } = setUp();
  write("a");
  turn.flushRound();
  assert.deepEqual(flushed, ["a"]);
  write("b");
  assert.deepEqual(flushed, ["a"], "the round gathers on");
  clock.endRound();
  assert.deepEqual(flushed, ["a", "b"]);
  write("c");
  assert.deepEqual(flushed, ["a", "b"], "two left this round, so that the next gathers too");
});

test("in a long round nothing waits for its end", () => {
  const { clock, flushed, write } = setUp();
  write("a");
  clock.advance(maxGatherMs);
  write("b");
  assert.deepEqual(flushed, ["a", "b"]);
  write("c");
  assert.deepEqual(flushed, ["a", "b"]);
  clock.endRound();
  assert.deepEqual(flushed, ["a", "b", "c"]);
});

test("after a turn that was alone in its round, turns end for themselves, and look for others now and then", () => {
  const { clock, flushed, write } = setUp();
  write("alone");
  clock.endRound();
  let writes = 0;
  for (; !clock.isAwaited && writes < 1000; writes += 1) write(String(writes));
  assert.ok(writes > 1 && writes < 1000, String(writes));
  assert.equal(flushed.length, writes, "the last one waits");
  write("together");
  clock.endRound();
  assert.equal(flushed.at(-1), "together");
  write("next round");
  assert.equal(flushed.at(-1), "together", "gathers again");
});
