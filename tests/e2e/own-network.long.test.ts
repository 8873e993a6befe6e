// Programs that are no part of a mesh, past all that loopback leaves open: from another network namespace, and as
// another user where `tulle up --own-user-only` closes its addresses. Each in a network of the test's own, so that the
// machine's is left alone.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { playInOwnNetwork } from "../tools/own-network.ts";
import type { StageResult } from "./own-network-stage.ts";
import { assertRefused } from "./strict-shop.ts";

function play(stage: string): Promise<StageResult> {
  return playInOwnNetwork(path.join(import.meta.dirname, "own-network-stage.ts"), [stage]);
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
