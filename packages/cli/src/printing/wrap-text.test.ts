// Breaking lines between words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { wrapItem, wrapLines, wrapText } from "./wrap-text.ts";

const cases = [
  { name: "short enough", text: "one two", columns: 7, expected: "one two" },
  { name: "no terminal", text: "one two", columns: undefined, expected: "one two" },
  { name: "between words", text: "one two three", columns: 8, expected: "one two\n  three" },
  { name: "a word that is too long", text: "a verylongword b", columns: 6, expected: "a\n  verylongword\n  b" },
];
for (const { name, text, columns, expected } of cases) {
  test(name, () => assert.equal(wrapText(text, columns, "  "), expected));
}

test("lines that are indented stay as they are", () => {
  assert.equal(wrapLines("Write it so:\n  a: b c d e f", 8), "Write it\nso:\n  a: b c d e f");
});

test("what an example is for, and how a command is used, go on as they began", () => {
  assert.equal(wrapLines("  # one two three\n  one two three", 11), "  # one two\n  # three\n  one two three");
  assert.equal(wrapLines("Usage: a b c d", 10), "Usage: a b\n  c d");
});

for (const { columns, expected } of [
  { columns: undefined, expected: "  --a-long-option <value>  what it does, in a few words more" },
  { columns: 80, expected: "  --a-long-option <value>  what it does, in a few words more" },
  { columns: 58, expected: "  --a-long-option <value>  what it does, in a few words\n                           more" },
  { columns: 40, expected: "  --a-long-option <value>\n      what it does, in a few words more" },
  { columns: 30, expected: "  --a-long-option <value>\n      what it does, in a few\n      words more" },
]) {
  test(`a term with its meaning in ${columns ?? "any number of"} columns`, () => {
    assert.equal(wrapItem("--a-long-option <value>", 23, "what it does, in a few words more", columns), expected);
  });
}
