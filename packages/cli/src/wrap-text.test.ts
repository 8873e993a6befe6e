// Breaking lines between words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { wrapText } from "./wrap-text.ts";

const cases = [
  { name: "short enough", text: "one two", columns: 7, expected: "one two" },
  { name: "no terminal", text: "one two", columns: undefined, expected: "one two" },
  { name: "between words", text: "one two three", columns: 8, expected: "one two\n  three" },
  { name: "a word that is too long", text: "a verylongword b", columns: 6, expected: "a\n  verylongword\n  b" },
];
for (const { name, text, columns, expected } of cases) {
  test(name, () => assert.equal(wrapText(text, columns, "  "), expected));
}
