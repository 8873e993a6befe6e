// The arithmetic and the reading of the bench, so that its figures can be believed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startProcess } from "../../tests/tools/processes.ts";
import { comparisonTable } from "../compare-commits.ts";
import { median } from "./median.ts";
import { readProcessUsage } from "./process-usage.ts";
import { parseWrk } from "./run-wrk.ts";

test("median", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
});

test("a comparison gives the median of the rounds' ratios", () => {
  const pairs = [
    { now: 10, before: 10 },
    { now: 40, before: 20 },
    { now: 33, before: 30 },
  ];
  assert.equal(
    comparisonTable(new Map([["http1", pairs]]), "abc A | b")
      .split("\n")
      .slice(-1)[0],
    "| http1 | 20.0 | 33.0 | 1.100 | 1.00–2.00 |",
  );
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
