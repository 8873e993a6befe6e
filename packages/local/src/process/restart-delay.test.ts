// Back-off between restarts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { restartDelayMs } from "./restart-delay.ts";

test("doubles from 200 ms and stays at 30 s", () => {
  assert.deepEqual([1, 2, 3, 4].map(restartDelayMs), [200, 400, 800, 1600]);
  assert.equal(restartDelayMs(9), 30_000);
  assert.equal(restartDelayMs(10_000), 30_000);
});
