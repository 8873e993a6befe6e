// Every way in which a request or its connection can fail, and every bad peer, on this proxy and on a stock Envoy, with
// clients of HTTP/1.1 and of HTTP/2: the same flags, details and counters, and a witness on another connection that is
// served all the while. docs/failures.md explains the rows.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type HttpVersion, versions } from "../../../../tests/tools/http2-client.ts";
import { expectedOf, type FailureRow, versionsOf } from "../testing/failures/failure-row.ts";
import { type FailureStage, type SideName, startFailureStage } from "../testing/failures/failure-stage.ts";
import { failureRows } from "../testing/failures/failure-table.ts";

/** What became of a row; the test of its name tells. */
type Outcome = { readonly lines: readonly string[] } | { readonly error: Error };

const sides: readonly SideName[] = ["ours", "envoys"];

interface Case {
  readonly row: FailureRow;
  readonly version: HttpVersion;
  readonly side: SideName;
  /** The client's own address. */
  readonly from: string;
}

const cases = versions.flatMap((version, ofVersion) =>
  sides.flatMap((side, ofSide) =>
    failureRows.flatMap((row, index): readonly Case[] =>
      versionsOf(row).includes(version)
        ? [{ row, version, side, from: `127.9.${10 * ofVersion + ofSide}.${index + 1}` }]
        : [],
    ),
  ),
);
const signsOf = ({ row, side, version }: Case) => expectedOf(row, side === "envoys", version);

async function play(stage: FailureStage, each: Case): Promise<Outcome> {
  const { row, side, version, from } = each;
  const client = await stage.connect(side, row.listener ?? "main", from, version);
  try {
    if (typeof row.play === "function") await row.play(client, stage.backEnd);
    else if (typeof row.play === "string") {
      client.write(row.play);
      await client.end();
    } else {
      client.ask(row.play);
      await client.answered();
    }
    return { lines: await stage.logLines(side, from, signsOf(each).lines.length) };
  } catch (error) {
    return { error: error as Error };
  } finally {
    client.socket.destroy();
  }
}

describe("failures, on both proxies", () => {
  let stage: FailureStage;
  const outcomes = new Map<Case, Outcome>();
  const served = new Map<string, number | Error>();

  before(async () => {
    stage = await startFailureStage();
    for (const version of versions) {
      for (const side of sides) await playAll(side, version);
    }
  });
  after(() => stage.stop());

  async function playAll(side: SideName, version: HttpVersion): Promise<void> {
    const witness = stage.witness(side, version);
    const now = cases.filter((each) => each.version === version && each.side === side);
    await Promise.all(now.map(async (each) => outcomes.set(each, await play(stage, each))));
    served.set(`${version}, ${side}`, await witness.finish().catch((error: unknown) => error as Error));
  }

  for (const each of cases) {
    test(`${each.row.name}, ${each.version}, ${each.side}`, () => {
      const outcome = outcomes.get(each)!;
      if ("error" in outcome) throw outcome.error;
      assert.deepEqual(outcome.lines, signsOf(each).lines);
    });
  }

  for (const version of versions) {
    for (const side of sides) {
      test(`nothing of this was felt on another connection, ${version}, ${side}`, () => {
        const answers = served.get(`${version}, ${side}`)!;
        if (answers instanceof Error) throw answers;
        assert.ok(answers > failureRows.length, `${answers} answers`);
      });
    }
  }

  for (const side of sides) {
    test(`each failure is counted once, ${side}`, async () => {
      const expected: Record<string, number> = {};
      for (const each of cases.filter((one) => one.side === side))
        for (const name of signsOf(each).counters ?? []) expected[name] = (expected[name] ?? 0) + 1;
      const counted: Record<string, number> = {};
      for (const name of Object.keys(expected)) counted[name] = await stage.counter(side, name);
      assert.deepEqual(counted, expected);
    });
  }
});
