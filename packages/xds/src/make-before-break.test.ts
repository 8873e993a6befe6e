// The order of a push against a state that the test sets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MakeBeforeBreak } from "./make-before-break.ts";
import type { ResourceTypeName } from "./resource-types.ts";

const limits = { dependencyTimeoutMs: 100, removalTimeoutMs: 300 };

test("each wait for clusters has the whole time", () => {
  const unsettled = new Set<ResourceTypeName>(["CDS"]);
  const order = new MakeBeforeBreak(limits, {
    owes: (type) => type === "RDS",
    isSettled: (type) => !unsettled.has(type),
    hasRefused: () => false,
    isServed: () => true,
  });
  const waitsAt = (nowMs: number): boolean => {
    const waits = order.mustWait("RDS", nowMs);
    order.allSent();
    return waits;
  };
  assert.deepEqual([0, 99, 100].map(waitsAt), [true, true, false]);
  assert.equal(order.mustWait("EDS", 0), false);
  unsettled.delete("CDS");
  assert.equal(waitsAt(110), false);
  unsettled.add("CDS");
  assert.deepEqual([500, 599, 600].map(waitsAt), [true, true, false]);
});
