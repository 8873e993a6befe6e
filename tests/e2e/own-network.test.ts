// Programs that are no part of a mesh, past all that loopback leaves open: from another network namespace, and as
// another user where `tulle up --own-user-only` closes its addresses. Each in a network of the test's own, so that the
// machine's is left alone.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { debianTool } from "../tools/debian-tool.ts";
import { startProcess } from "../tools/processes.ts";
import { runCommand } from "../tools/run-command.ts";
import { ToolUnavailable } from "../tools/tool-unavailable.ts";
import type { StageResult } from "./own-network-stage.ts";
import { assertRefused } from "./strict-shop.ts";

async function play(stage: string): Promise<StageResult> {
  await debianTool("iproute2");
  await debianTool("nftables");
  if ((await runCommand("unshare", ["--net", "--", "true"])).code !== 0) {
    throw new ToolUnavailable("a network namespace", "it takes root to make one; run this test as root");
  }
  const program = path.join(import.meta.dirname, "own-network-stage.ts");
  const command = ["--net", "--", process.execPath, program, stage];
  await using started = await startProcess("unshare", command, { name: `the stage ${stage}`, group: true });
  const [line] = await started.waitForOutput(/^\{"outcomes".*\}$/m, { timeoutMs: 150_000 });
  await started.exited;
  return JSON.parse(line) as StageResult;
}

/** What answers, and what is left when that is taken out. */
function answered(outcomes: StageResult["outcomes"]): readonly string[] {
  return Object.entries(outcomes).flatMap(([what, outcome]) => (outcome.startsWith("answered") ? [what] : []));
}

test("from another network namespace nothing of the mesh is reached", { timeout: 180_000 }, async () => {
  const { outcomes } = await play("another-network");
  // The way is there: something else that listens on this side answers.
  const [witness, ...others] = answered(outcomes);
  assert.match(witness ?? "", /^port 10\.77\.0\.1:\d+$/);
  assert.deepEqual(others, []);
  const { [witness!]: _, ...rest } = outcomes;
  assertRefused(rest);
  assert.ok(Object.keys(rest).length > 60, JSON.stringify(rest, undefined, 2));
});

test(
  "with --own-user-only another user reaches the published port alone, and answers nobody at an address of the mesh",
  { timeout: 180_000 },
  async () => {
    const { outcomes, tables, squatted } = await play("own-user-only");
    const [published, ...others] = answered(outcomes);
    assert.match(published ?? "", /^port 127\.0\.0\.1:\d+$/);
    assert.deepEqual(others, []);
    const { [published!]: _, ...rest } = outcomes;
    assertRefused(rest);
    assert.deepEqual(
      new Set(Object.entries(rest).map(([what, outcome]) => (what.startsWith("port ") ? outcome : ""))),
      new Set(["", "refused ECONNREFUSED"]),
    );
    const [during, afterwards] = tables;
    assert.match(during, /table ip tulle_\d+ \{[^}]*flags owner/);
    assert.equal(afterwards, "none");
    // In a pod's place he is neither heard nor told anything, whoever asks.
    assert.deepEqual(squatted, {
      elsewhere: "answered, received",
      mesh: "no answer, not received",
      "elsewhere by cookies": "answered, received",
      "mesh by cookies": "no answer, not received",
    });
  },
);
