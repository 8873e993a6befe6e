// What each field of Telemetry and of the mesh's configuration about telemetry does, through real proxies of both
// kinds, and that it is the field that does it: each case is played again without it. A pod's own calls to itself pass
// its proxy as a client and as a server.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { withoutField } from "../tools/field-paths.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { fieldsOfTelemetry } from "./telemetry/fields-of-telemetry.ts";
import { fieldsWithoutCase, telemetryFields } from "./telemetry/telemetry-fields.ts";
import type { TelemetryRow } from "./telemetry/telemetry-row.ts";
import { telemetryRows } from "./telemetry/telemetry-rows.ts";
import { type Played, TelemetryStage } from "./telemetry/telemetry-stage.ts";

test("every field has a row, and every row a case", () => {
  const listed = [...Object.keys(telemetryFields), ...Object.keys(fieldsWithoutCase)];
  const fields = fieldsOfTelemetry().map((field) => field.join("."));
  assert.deepEqual(listed.sort(), fields.sort());
  const unknown = Object.values(telemetryFields).filter(([, row]) => telemetryRows[row] === undefined);
  assert.deepEqual(unknown, []);
});

/** The rows of fields that leave nothing. */
const withoutEffect: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(fieldsWithoutCase).flatMap(([field, [, , row]]) => (row === undefined ? [] : [[field, row] as const])),
);

describe("what each field of telemetry does", () => {
  const stage = new TelemetryStage(temporaryFolder("tulle-telemetry-"));
  const played = new Map<string, Played>();
  const rowWithout = (field: string): TelemetryRow =>
    withoutField(telemetryRows[telemetryFields[field]?.[1] ?? withoutEffect[field]!], field.split(".")) as TelemetryRow;

  before(
    async () => {
      await stage.start();
      for (const [name, row] of Object.entries(telemetryRows)) played.set(name, await stage.play(row, row.expected));
      for (const [field, [, , without]] of Object.entries(telemetryFields)) {
        if (without !== "refused") played.set(field, await stage.play(rowWithout(field), without));
      }
      for (const [field, row] of Object.entries(withoutEffect)) {
        played.set(field, await stage.play(rowWithout(field), telemetryRows[row]!.expected));
      }
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

  const assertLeft = (name: string): void =>
    assert.deepEqual(outcomes(played.get(name)!), expectedOf(played.get(name)!));

  for (const name of Object.keys(telemetryRows)) test(name, () => assertLeft(name));
  for (const [field, row] of Object.entries(withoutEffect))
    test(`${row}, the same without ${field}`, () => assertLeft(field));
  for (const [field, [, row, without]] of Object.entries(telemetryFields)) {
    test(`${row}, without ${field}`, () => {
      assert.equal(stage.isRefused(rowWithout(field)), without === "refused");
      assert.notEqual(without, telemetryRows[row]!.expected);
      if (without !== "refused") assertLeft(field);
    });
  }
});

type Outcomes = Readonly<Record<string, string>>;

/** By kind of proxy. */
function outcomes({ row, seen }: Played): Outcomes {
  return Object.fromEntries([...seen].map(([kind, see]) => [kind, row.sees(see())]));
}

function expectedOf({ expected, seen }: Played): Outcomes {
  return Object.fromEntries([...seen.keys()].map((kind) => [kind, expected]));
}
