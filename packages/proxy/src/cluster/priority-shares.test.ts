// The shares of priority levels, as Envoy's documentation of load balancing ("Priority levels") reckons them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { priorityShares } from "./priority-shares.ts";

/** `healthy[+degraded]/hosts[-excluded]` of each level; the share of each, `+` its degraded hosts', `!` in panic. */
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
  // What healthy hosts lack, degraded ones take, of the first level as of the last.
  { levels: "1+1/2", expected: "70+30" },
  { levels: "0+2/2", expected: "0+100" },
  { levels: "1+1/2 1/2", expected: "70 30" },
  { levels: "1+1/4 1/4", expected: "35+30 35" },
  // Excluded hosts count neither way.
  { levels: "1/4-3", expected: "100" },
  { levels: "0/4-4", expected: "100!" },
  { levels: "0/2-2 1/1", expected: "0 100" },
];
for (const { levels, threshold = 50, expected } of rows) {
  test(`${levels} at a panic threshold of ${threshold}`, () => {
    const counts = levels.split(" ").map((level) => {
      const [, healthy, degraded, hosts, excluded] = /^(\d+)\+?(\d*)\/(\d+)-?(\d*)$/.exec(level)!.map(Number);
      return { healthy: healthy!, degraded: degraded!, hosts: hosts!, excluded: excluded! };
    });
    const shares = priorityShares(counts, threshold);
    const text = shares.map(
      ({ percent, degradedPercent, isInPanic }) =>
        `${percent}${degradedPercent > 0 ? `+${degradedPercent}` : ""}${isInPanic ? "!" : ""}`,
    );
    assert.equal(text.join(" "), expected);
  });
}
