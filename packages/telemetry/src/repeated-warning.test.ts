// What a peer says again and again is told once, and what it says anew is bounded.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RepeatedWarning } from "./repeated-warning.ts";

function start() {
  const told: string[] = [];
  const clock = { nowMs: 0 };
  const warning = new RepeatedWarning(
    { warning: (message, fields) => void told.push(`${message} ${JSON.stringify(fields)}`) },
    () => clock.nowMs,
  );
  return { told, clock, warning };
}

test("the same words are told once a minute, with how often they came", () => {
  const { told, clock, warning } = start();
  const answers = [0, 1000, 59_999, 60_000, 119_999].map((nowMs) => {
    clock.nowMs = nowMs;
    return warning.tell("ended", { reason: "a" });
  });
  assert.deepEqual(answers, [true, false, false, true, false]);
  assert.deepEqual(told, ['ended {"reason":"a"}', 'ended {"reason":"a","times":3}']);
});

test("other words are told at once a second later, and are not kept without end", () => {
  const { told, clock, warning } = start();
  for (let index = 0; index < 1000; index += 1) {
    clock.nowMs = index * 100;
    warning.tell("ended", { reason: String(index) });
  }
  assert.equal(told.length, 100);
  assert.equal(told[1], 'ended {"reason":"10"}');
  // Long forgotten.
  clock.nowMs += 1000;
  assert.ok(warning.tell("ended", { reason: "0" }));
  assert.equal(told.at(-1), 'ended {"reason":"0"}');
});
