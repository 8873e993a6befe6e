// Which mistakes are near enough to a name to suggest it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nearestName } from "./nearest-name.ts";

const names = ["up", "down", "pods", "proxy-status", "proxy-config"];
const cases = [
  { input: "pod", expected: "pods" },
  { input: "dwon", expected: "down" },
  { input: "UP", expected: "up" },
  { input: "proxy-stauts", expected: "proxy-status" },
  { input: "proxystatus", expected: "proxy-status" },
  { input: "kubectl", expected: undefined },
  { input: "", expected: undefined },
];
for (const { input, expected } of cases) {
  test(`"${input}" is near ${expected ?? "nothing"}`, () => assert.equal(nearestName(input, names), expected));
}
