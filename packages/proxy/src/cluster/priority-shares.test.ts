// The shares of priority levels, as Envoy's documentation of load balancing ("Priority levels") reckons them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { priorityShares } from "./priority-shares.ts";

/** `healthy/hosts` of each level, the share of each, `!` for one in panic. */
const rows: readonly { readonly levels: string; readonly threshold?: number; readonly expected: string }[] = [
  { levels: "3/3", expected: "100" },
  { levels: "0/3", expected: "100!" },
  { levels: "2/3 2/2", expected: "93 7" },
  { levels: "1/4 4/4", expected: "35 65" },
  { levels: "0/4 4/4", expected: "0 100" },
  { levels: "18/100 100/100", expected: "25 75" },
  { levels: "25/100 25/100 0/100", expected: "34! 33! 33!" },
  { levels: "25/100 0/100", expected: "50! 50!" },
  { levels: "25/100 25/100", threshold: 10, expected: "50 50" },
  { levels: "5/100 20/100", threshold: 10, expected: "20! 80" },
  { levels: "0/2 0/1", expected: "67! 33!" },
  { levels: "0/2 0/1", threshold: 0, expected: "100 0" },
  { levels: "0/0 2/2", expected: "0 100" },
  // A level that is whole is not in panic, whatever the threshold.
  { levels: "3/4", threshold: 80, expected: "100" },
];
for (const { levels, threshold = 50, expected } of rows) {
  test(`${levels} at a panic threshold of ${threshold}`, () => {
    const counts = levels.split(" ").map((level) => {
      const [healthy, hosts] = level.split("/").map(Number);
      return { healthy: healthy!, hosts: hosts! };
    });
    const shares = priorityShares(counts, threshold);
    assert.equal(shares.map(({ percent, isInPanic }) => `${percent}${isInPanic ? "!" : ""}`).join(" "), expected);
  });
}
