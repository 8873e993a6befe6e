// What makes `npm test` fail beside failing tests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { verdict, type Outcome } from "./test-outcomes.ts";

const place = { name: "routes by weight", file: "a.test.ts" };
const failed: Outcome = { ...place, kind: "failed", reason: "expected 200" };
const parent: Outcome = { ...place, kind: "failed", reason: "1 subtest failed" };
const skipped: Outcome = { ...place, kind: "skipped", reason: "true" };
const noEnvoy: Outcome = { ...place, kind: "failed", reason: "hook failed\nTOOL NOT AVAILABLE: envoy: no network" };
const cancelled: Outcome = {
  ...place,
  kind: "failed",
  reason: "test did not finish before its parent and was cancelled",
};
const skippedForTool: Outcome = { ...noEnvoy, kind: "skipped" };

const cases: readonly {
  name: string;
  outcomes: readonly Outcome[];
  passed: boolean;
  needsTools: boolean;
  expected: boolean;
}[] = [
  { name: "all passed", outcomes: [], passed: true, needsTools: false, expected: true },
  { name: "all passed where every tool is needed", outcomes: [], passed: true, needsTools: true, expected: true },
  { name: "one failed", outcomes: [failed, parent], passed: false, needsTools: false, expected: false },
  { name: "the runner failed without a failed test", outcomes: [], passed: false, needsTools: false, expected: false },
  { name: "one skipped", outcomes: [skipped], passed: true, needsTools: false, expected: false },
  { name: "one todo", outcomes: [{ ...skipped, kind: "todo" }], passed: true, needsTools: false, expected: false },
  { name: "a tool is missing", outcomes: [noEnvoy, parent], passed: false, needsTools: false, expected: true },
  {
    name: "a tool is missing in a hook",
    outcomes: [cancelled, noEnvoy],
    passed: false,
    needsTools: false,
    expected: true,
  },
  {
    name: "cancelled without a missing tool",
    outcomes: [cancelled],
    passed: false,
    needsTools: false,
    expected: false,
  },
  {
    name: "a tool is missing where all are needed",
    outcomes: [noEnvoy],
    passed: false,
    needsTools: true,
    expected: false,
  },
  { name: "skipped for a tool", outcomes: [skippedForTool], passed: true, needsTools: false, expected: true },
  {
    name: "skipped for a tool that is needed",
    outcomes: [skippedForTool],
    passed: true,
    needsTools: true,
    expected: false,
  },
  {
    name: "a tool is missing and one failed",
    outcomes: [noEnvoy, failed],
    passed: false,
    needsTools: false,
    expected: false,
  },
];

for (const { name, outcomes, passed, needsTools, expected } of cases) {
  test(name, () => {
    const { ok, messages } = verdict(outcomes, { passed, needsTools });
    assert.equal(ok, expected);
    if (!ok && passed) assert.match(messages.join("\n"), /routes by weight \(a\.test\.ts\)/);
  });
}

test("a tool that several tests miss is told in one line", () => {
  const another = { ...noEnvoy, name: "routes by header" };
  const { messages } = verdict([noEnvoy, parent, another], { passed: false, needsTools: true });
  assert.deepEqual(messages, [
    "NOT RUN: routes by weight (a.test.ts) and 1 more: TOOL NOT AVAILABLE: envoy: no network",
    "A missing tool is a failure here.",
  ]);
});
