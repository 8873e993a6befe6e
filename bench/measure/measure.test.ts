// The arithmetic and the reading of the bench, so that its figures can be believed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startProcess } from "../../tests/tools/processes.ts";
import { eachContestant } from "./each-contestant.ts";
import { median, weightedMedian } from "./median.ts";
import { readProcessUsage } from "./process-usage.ts";
import { parseWrk } from "./run-wrk.ts";
import { warmUp } from "./warm-up.ts";

test("median", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
});

test("weighted median", () => {
  const of = (...pairs: readonly (readonly [number, number])[]): number =>
    weightedMedian(pairs.map(([value, weight]) => ({ value, weight })));
  assert.equal(of([3, 1], [1, 1], [2, 1]), 2);
  assert.equal(of([3, 5], [1, 1], [2, 1]), 3);
  assert.equal(of([9, 0], [4, 1]), 4);
  assert.throws(() => of(), /no values/);
});

test("each contestant is the first in every other round", async () => {
  for (const atOnce of [false, true]) {
    const order: string[] = [];
    for (const round of [1, 2])
      await eachContestant(round, ["a", "b"], { atOnce }, async (name) => {
        order.push(`${name} begins`);
        await Promise.resolve();
        order.push(`${name} ends`);
      });
    const expected = atOnce
      ? ["a begins", "b begins", "a ends", "b ends", "b begins", "a begins", "b ends", "a ends"]
      : ["a begins", "a ends", "b begins", "b ends", "b begins", "b ends", "a begins", "a ends"];
    assert.deepEqual(order, expected);
  }
});

test("the warm-up goes on until enough requests went through, within bounds", async () => {
  for (const { each, expected } of [
    { each: 60, expected: 2 },
    { each: 1, expected: 8 },
  ]) {
    let loads = 0;
    const load = async (seconds: number) => {
      loads += 1;
      return { requests: each, requestsPerSecond: each / seconds, p50Ms: 1, p99Ms: 1 };
    };
    await warmUp(load, { seconds: 1, requests: 100 });
    assert.equal(loads, expected);
  }
});

const output = `Running 4s test @ http://127.0.0.1:1/
  Latency Distribution
     50%  812.00us
     75%    0.90ms
     90%    1.10ms
     99%    1.94s
  123456 requests in 4.00s, 150.12MB read
Requests/sec:  30864.02
`;

test("wrk's report is read with its units", () => {
  assert.deepEqual(parseWrk(output), { requests: 123456, requestsPerSecond: 30864.02, p50Ms: 0.812, p99Ms: 1940 });
});

test("a load with failures is no measurement", () => {
  assert.throws(
    () => parseWrk(`${output}  Non-2xx or 3xx responses: 3\n`),
    /did not go through: Non-2xx or 3xx responses: 3/,
  );
});

test("usage counts the children of a process", async () => {
  const burn =
    'const end = process.cpuUsage().user + 3e5; while (process.cpuUsage().user < end); console.log("burnt"); setInterval(() => {}, 1000)';
  const parent = `require("child_process").spawn(process.execPath, ["-e", ${JSON.stringify(burn)}], { stdio: "inherit" })`;
  await using started = await startProcess(process.execPath, ["-e", parent], { group: true });
  await started.waitForOutput(/burnt/, { timeoutMs: 60_000 });
  const usage = await readProcessUsage(started.pid);
  assert.ok(usage.cpuSeconds >= 0.3, `${usage.cpuSeconds} s`);
  assert.ok(usage.residentBytes > 50 * 1024 * 1024, `${usage.residentBytes} bytes`);
});
