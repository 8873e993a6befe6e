// That it is each field of Telemetry, and of the mesh's configuration about telemetry, which does what its row says:
// each case of telemetry.test.ts is played again without it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { withoutField } from "../tools/field-paths.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { playCases, type TelemetryCase } from "./telemetry/play-cases.ts";
import { fieldsWithoutCase, telemetryFields } from "./telemetry/telemetry-fields.ts";
import type { TelemetryRow } from "./telemetry/telemetry-row.ts";
import { telemetryRows } from "./telemetry/telemetry-rows.ts";
import { TelemetryStage } from "./telemetry/telemetry-stage.ts";

function rowWithout(row: string, field: string): TelemetryRow {
  return withoutField(telemetryRows[row]!, field.split(".")) as TelemetryRow;
}

describe("what is left without a field of telemetry", () => {
  const stage = new TelemetryStage(temporaryFolder("tulle-telemetry-"));
  const cases: TelemetryCase[] = [];
  for (const [field, [, row, without]] of Object.entries(telemetryFields)) {
    test(`${row}, without ${field}: refused or different`, () => {
      assert.equal(stage.isRefused(rowWithout(row, field)), without === "refused");
      assert.notEqual(without, telemetryRows[row]!.expected);
    });
    if (without === "refused") continue;
    cases.push({ name: `${row}, without ${field}`, row: rowWithout(row, field), expected: without });
  }
  for (const [field, [, , row]] of Object.entries(fieldsWithoutCase)) {
    // The rows of fields that leave nothing.
    if (row === undefined) continue;
    const { expected } = telemetryRows[row]!;
    cases.push({ name: `${row}, the same without ${field}`, row: rowWithout(row, field), expected });
  }
  playCases(stage, cases);
});
