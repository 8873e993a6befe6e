// A million random exchanges, or as many as the time allows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { soakMinutes } from "../../../../../tests/tools/soak-minutes.ts";
import { runExchanges } from "../../testing/http2-exchanges.ts";

test("a million messages between Node's client and Node's host arrive as they were sent", async (t) => {
  const done = await runExchanges(t, { count: 1_000_000, longestMs: soakMinutes() * 60_000 });
  assert.ok(done > 0);
});
