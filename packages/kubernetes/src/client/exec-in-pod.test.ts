// How a command in a pod has ended, as the API server tells it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { outcomeOf } from "./exec-in-pod.ts";

const failure = (more: object): string => JSON.stringify({ status: "Failure", ...more });
for (const { name, text, expected } of [
  { name: "all went well", text: JSON.stringify({ status: "Success" }), expected: 0 },
  {
    name: "its own status",
    text: failure({ reason: "NonZeroExitCode", details: { causes: [{ reason: "ExitCode", message: "3" }] } }),
    expected: 3,
  },
  { name: "no such program", text: failure({ message: "executable not found" }), expected: "executable not found" },
  { name: "words of an older server", text: "container not found\n", expected: "container not found" },
]) {
  test(`${name} → ${expected}`, () => assert.equal(outcomeOf(text), expected));
}
