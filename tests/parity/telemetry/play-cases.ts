// Plays cases of telemetry on one stage, and has a test for each.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { TelemetryRow } from "./telemetry-row.ts";
import type { Played, TelemetryStage } from "./telemetry-stage.ts";

export interface TelemetryCase {
  readonly name: string;
  readonly row: TelemetryRow;
  readonly expected: string;
}

/** The tests of a suite, whose hooks begin and end the stage. */
export function playCases(stage: TelemetryStage, cases: readonly TelemetryCase[]): void {
  const played = new Map<string, Played>();

  before(
    async () => {
      await stage.start();
      for (const { name, row, expected } of cases) played.set(name, await stage.play(row, expected));
      // Looking at one costs a look at all that calls have left: what was found is not looked for again.
      let missing = [...played.values()];
      await stage.end(() => {
        missing = missing.filter((each) => !isDeepStrictEqual(outcomes(each), expectedOf(each)));
        return missing.length === 0;
      });
    },
    { timeout: 180_000 },
  );
  after(() => stage.close());

  for (const { name } of cases) {
    test(name, () => assert.deepEqual(outcomes(played.get(name)!), expectedOf(played.get(name)!)));
  }
}

type Outcomes = Readonly<Record<string, string>>;

/** By kind of proxy. */
function outcomes({ row, seen }: Played): Outcomes {
  return Object.fromEntries([...seen].map(([kind, see]) => [kind, row.sees(see())]));
}

function expectedOf({ expected, seen }: Played): Outcomes {
  return Object.fromEntries([...seen.keys()].map((kind) => [kind, expected]));
}
