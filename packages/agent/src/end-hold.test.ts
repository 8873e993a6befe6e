// Programs of a pod that leaves are kept from ending while somebody still asks them, and no longer than told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EndHold } from "./end-hold.ts";

test("who is asked no more is held for the least time", async () => {
  const hold = new EndHold({ taken: () => Promise.resolve(7), leastMs: 1500, mostMs: 600_000 });
  await hold.ended();
});

test("who is still asked is held until nobody asks", async () => {
  let [taken, reads] = [0, 0];
  const hold = new EndHold({
    taken: () => {
      reads += 1;
      if (reads <= 12) taken += 1;
      return Promise.resolve(taken);
    },
    leastMs: 0,
    mostMs: 600_000,
  });
  await hold.ended();
  assert.equal(taken, 12);
});

test("who is asked for ever is held for the longest time, and each hook for its own", async () => {
  let taken = 0;
  const asked = Promise.withResolvers<void>();
  const hold = new EndHold({
    taken: () => {
      taken += 1;
      if (taken === 4) asked.resolve();
      return Promise.resolve(taken);
    },
    leastMs: 0,
    mostMs: 2000,
  });
  const ends: string[] = [];
  const first = hold.ended().then(() => ends.push("first"));
  await asked.promise;
  await Promise.all([first, hold.ended().then(() => ends.push("second"))]);
  assert.deepEqual(ends, ["first", "second"]);
});

test("a proxy that does not answer holds nobody for long", async () => {
  const hold = new EndHold({ taken: () => Promise.resolve(undefined), leastMs: 0, mostMs: 600_000 });
  await hold.ended();
});
