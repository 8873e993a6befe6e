// Memory is given back once a process rests, not while it works, and the process goes on as before.
import assert from "node:assert/strict";
import { test } from "node:test";
import { giveBackAtRest, giveMemoryBack } from "./rest.ts";

test("a process that works is asked again later, and one that rests gives its memory back once", async () => {
  let cpuMicros = 0;
  let looks = 0;
  let given = 0;
  await giveBackAtRest({
    signal: new AbortController().signal,
    firstLookMs: 1,
    lookMs: 1,
    cpuMicros: () => {
      looks += 1;
      // Of the first two looks, each of two questions, all of a core.
      if (looks <= 4) cpuMicros += 3_000_000;
      return cpuMicros;
    },
    giveBack: () => {
      given += 1;
      return Promise.resolve();
    },
  });
  assert.deepEqual({ looks, given }, { looks: 6, given: 1 });
});

test("one that ends is not asked any more", async () => {
  const ending = new AbortController();
  const given = giveBackAtRest({ signal: ending.signal, giveBack: () => Promise.reject(new Error("asked")) });
  ending.abort();
  await given;
});

test("what is in use stays, and what is not goes", async () => {
  const kept = { text: "kept".repeat(1000) };
  const gone = new WeakRef({ bytes: Buffer.alloc(1_000_000, 1) });
  await giveMemoryBack();
  assert.equal(gone.deref(), undefined);
  assert.equal(kept.text.length, 4000);
  assert.equal("gc" in globalThis, false, "the collector is not left to whoever finds it");
});
