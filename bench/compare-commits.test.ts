// What a comparison makes of the slices that scenarios give it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareTrees, comparisonTable } from "./compare-commits.ts";
import type { CpuRow, CpuSlice, Scenario, ScenarioOptions } from "./scenario.ts";

const before = { name: "Tulle abc", folder: "/none" };
const options = { starts: 2, seconds: 3, progress: () => undefined };

function slice(microseconds: number, units: number): CpuSlice {
  return { microseconds, units };
}

function scenario(name: string, run: Scenario["run"]): Scenario {
  return { name, summary: "", isCompared: true, run };
}

test("both trees are loaded at once, in an even number of slices, after each start", async () => {
  const asked: ScenarioOptions[] = [];
  const run = async (given: ScenarioOptions) => {
    asked.push(given);
    const cpu: readonly CpuRow[] = [
      { work: "a request", contestant: "Tulle abc", slices: [slice(10, 8), slice(20, 5)] },
      { work: "a request", contestant: "Tulle", slices: [slice(10, 7), slice(40, 6)] },
    ];
    return { markdown: "", data: undefined, cpu };
  };
  const { rows, failures } = await compareTrees([scenario("http1", run)], before, options);
  const pairs = [
    { now: 10, before: 10, units: 7 },
    { now: 40, before: 20, units: 5 },
  ];
  assert.deepEqual(rows, [{ name: "http1: a request", starts: [pairs, pairs] }]);
  assert.deepEqual(failures, new Map());
  assert.deepEqual(
    asked.map(({ rounds, seconds, atOnce, proxies }) => ({ rounds, seconds, atOnce, proxies })),
    Array.from({ length: 2 }, () => ({ rounds: 4, seconds: 1, atOnce: true, proxies: ["Tulle abc", "Tulle"] })),
  );
});

test("a commit that cannot be driven gets a row that says so, and the other scenarios go on", async () => {
  const undrivable = scenario("mtls", async () => {
    throw new Error("Tulle abc: no field | x\nat y");
  });
  const other = scenario("up", async () => assert.fail("it has no rows of CPU"));
  const idle = scenario("idle", async () => ({ markdown: "", data: undefined, cpu: [] }));
  const compared = await compareTrees([undrivable, { ...other, isCompared: false }, idle], before, options);
  assert.equal(
    comparisonTable(compared).split("\n").at(-1),
    "| mtls | – | – | – | – | – | not measured: Tulle abc: no field \\| x at y |",
  );
});

test("the table has the median of the ratios of slices, and slices with more work count more", () => {
  const first = [
    { now: 10, before: 10, units: 3 },
    { now: 40, before: 20, units: 7 },
  ];
  const starts = [
    first,
    [
      { now: 33, before: 30, units: 50 },
      { now: 7, before: 5, units: 1 },
    ],
  ];
  const failures = new Map([["http1", "a third start"]]);
  const table = comparisonTable({ before: "Tulle abc", rows: [{ name: "http1: a request", starts }], failures });
  assert.deepEqual(table.split("\n"), [
    "| CPU µs | Tulle abc | least | now | least | median ratio | of each start |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    "| http1: a request | 30.0 | 5.0 | 33.0 | 7.0 | 1.100 | 2.00 1.10 |",
  ]);
});
