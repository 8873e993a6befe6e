// Long work lets the event loop go on, and lets out what that has to send before it takes its next slice.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Pauses, beforeEachSlice } from "./pauses.ts";

test("a pause is a round of the event loop, at whose end somebody is called before the work goes on", async (t) => {
  const order: string[] = [];
  beforeEachSlice(() => order.push("before the slice"));
  t.after(() => beforeEachSlice(() => undefined));
  const taken = new Pauses().take().then(() => order.push("slice"));
  setImmediate(() => order.push("end of the round"));
  await taken;
  assert.deepEqual(order.slice(0, 2), ["before the slice", "slice"]);
});
