// Every way in which a request or its connection can fail, and every bad peer, on this proxy and on a stock Envoy: the
// same flags, details and counters, and a witness on another connection that is served all the while. docs/failures.md
// explains the rows.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type FailureStage, type SideName, startFailureStage } from "../testing/failures/failure-stage.ts";
import type { FailureRow } from "../testing/failures/failure-row.ts";
import { failureRows } from "../testing/failures/failure-table.ts";

/** What became of a row; the test of its name tells. */
type Outcome = { readonly lines: readonly string[] } | { readonly error: Error };

const sides: readonly SideName[] = ["ours", "envoys"];

const expectedOf = (row: FailureRow, side: SideName): Pick<FailureRow, "lines" | "counters"> =>
  side === "ours" ? row : { ...row, ...row.envoy };

async function play(stage: FailureStage, side: SideName, row: FailureRow, from: string): Promise<Outcome> {
  const client = await stage.connect(side, row.listener ?? "main", from);
  try {
    if (typeof row.play === "string") {
      client.send(row.play);
      await client.end();
    } else {
      await row.play(client, stage.backEnd);
    }
    return { lines: await stage.logLines(side, from, expectedOf(row, side).lines.length) };
  } catch (error) {
    return { error: error as Error };
  } finally {
    client.socket.destroy();
  }
}

describe("failures, on both proxies", () => {
  let stage: FailureStage;
  const outcomes = new Map<string, Outcome>();
  const served = new Map<SideName, number | Error>();
  const key = (side: SideName, row: FailureRow): string => `${side} ${row.name}`;

  before(async () => {
    stage = await startFailureStage();
    for (const [number, side] of sides.entries()) {
      const witness = stage.witness(side);
      const playing = failureRows.map(async (row, index) => {
        outcomes.set(key(side, row), await play(stage, side, row, `127.9.${number + 1}.${index + 1}`));
      });
      await Promise.all(playing);
      served.set(side, await witness.finish().catch((error: unknown) => error as Error));
    }
  });
  after(() => stage.stop());

  for (const row of failureRows) {
    for (const side of sides) {
      test(`${row.name}, ${side}`, () => {
        const outcome = outcomes.get(key(side, row))!;
        if ("error" in outcome) throw outcome.error;
        assert.deepEqual(outcome.lines, expectedOf(row, side).lines);
      });
    }
  }

  for (const side of sides) {
    test(`nothing of this was felt on another connection, ${side}`, () => {
      const answers = served.get(side)!;
      if (answers instanceof Error) throw answers;
      assert.ok(answers > failureRows.length, `${answers} answers`);
    });

    test(`each failure is counted once, ${side}`, async () => {
      const expected: Record<string, number> = {};
      for (const row of failureRows)
        for (const name of expectedOf(row, side).counters ?? []) expected[name] = (expected[name] ?? 0) + 1;
      const counted: Record<string, number> = {};
      for (const name of Object.keys(expected)) counted[name] = await stage.counter(side, name);
      assert.deepEqual(counted, expected);
    });
  }
});
