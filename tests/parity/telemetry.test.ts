// What Telemetry and the mesh's configuration about telemetry do, through real proxies of both kinds. A pod's own calls
// to itself pass its proxy as a client and as a server. That each field is what does it: telemetry-fields.long.test.ts.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { fieldsOfTelemetry } from "./telemetry/fields-of-telemetry.ts";
import { playCases } from "./telemetry/play-cases.ts";
import { fieldsWithoutCase, telemetryFields } from "./telemetry/telemetry-fields.ts";
import { telemetryRows } from "./telemetry/telemetry-rows.ts";
import { TelemetryStage } from "./telemetry/telemetry-stage.ts";

test("every field has a row, and every row a case", () => {
  const listed = [...Object.keys(telemetryFields), ...Object.keys(fieldsWithoutCase)];
  const fields = fieldsOfTelemetry().map((field) => field.join("."));
  assert.deepEqual(listed.sort(), fields.sort());
  const unknown = Object.values(telemetryFields).filter(([, row]) => telemetryRows[row] === undefined);
  assert.deepEqual(unknown, []);
});

describe("what telemetry does", () => {
  const cases = Object.entries(telemetryRows).map(([name, row]) => ({ name, row, expected: row.expected }));
  playCases(new TelemetryStage(temporaryFolder("tulle-telemetry-")), cases);
});
