// What the mesh's configuration takes for an operator of formats is what the proxy takes: one that only one of the two
// knew would be refused by name, or take a listener with it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatProblem } from "@tulle/config";
import { knownOperators } from "../../packages/proxy/src/testing/known-operators.ts";

test("the mesh's configuration knows every operator of the proxy", () => {
  assert.ok(knownOperators.length > 100, `${knownOperators.length}`);
  const unknown = knownOperators.filter((name) => formatProblem(`%${name}%`)?.includes("is no operator") === true);
  assert.deepEqual(unknown, []);
});
