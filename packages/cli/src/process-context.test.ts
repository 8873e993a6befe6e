// How wide a terminal is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsOf } from "./process-context.ts";

const cases = [
  { name: "that says so", stream: { isTTY: true, columns: 40 }, expected: 40 },
  { name: "that does not know", stream: { isTTY: true, columns: 0 }, expected: 80 },
  { name: "that is none", stream: {}, expected: undefined },
];
for (const { name, stream, expected } of cases) {
  test(`a terminal ${name}`, () => assert.equal(columnsOf(stream), expected));
}
