// Every row of the rule tables is guarded by a test.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkRuleTables } from "./rule-table-check.ts";

test("without any one row of the rule tables a test fails", async () => {
  const results = await checkRuleTables([], () => undefined);
  assert.deepEqual(
    results.filter((result) => !result.guarded),
    [],
  );
});
