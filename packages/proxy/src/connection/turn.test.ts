// When what was written leaves: at the end of the turn, or soon after where there was none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../hand-built/manual-clock.ts";
import { Turn } from "./turn.ts";

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
