// A minute of random exchanges through both codecs, with nghttp2 at either end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runExchanges } from "../../testing/http2-exchanges.ts";

test("what Node's client and Node's host say to each other through the codecs arrives as it was sent", async (t) => {
  const done = await runExchanges(t, { count: 1_000_000, longestMs: 60_000 });
  assert.ok(done > 0);
});
