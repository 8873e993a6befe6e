// What anybody can make happen is told once a second, with how often it was.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeldomWarning } from "./seldom-warning.ts";

test("a warning is told once a second, and counts what was not told", () => {
  const told: unknown[] = [];
  let nowMs = 0;
  const warning = new SeldomWarning({ warning: (message, fields) => void told.push([message, fields]) }, () => nowMs);
  for (nowMs of [0, 1, 999, 1000, 1001]) warning.tell("refused", { peer: nowMs });
  assert.deepEqual(told, [
    ["refused", { peer: 0, times: 1 }],
    ["refused", { peer: 1000, times: 3 }],
  ]);
});
