// Columns that texts take on a terminal.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFitting } from "./format-table.ts";
import { padToWidth, textWidth } from "./text-width.ts";

for (const { text, expected } of [
  { text: "", expected: 0 },
  { text: "ann", expected: 3 },
  { text: "\u001b[31mred\u001b[39m", expected: 3 },
  { text: "\u{e9}t\u{e9}", expected: 3 },
  { text: "e\u0301", expected: 1 },
  { text: "\u65e5\u672c\u8a9e", expected: 6 },
  { text: "\ud55c\uae00", expected: 4 },
  { text: "\uff21", expected: 2 },
  { text: "\u{1f600}", expected: 2 },
  { text: "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}", expected: 2 },
  { text: "\u25cf \u2026", expected: 3 },
  { text: "\u05e9\u05dc\u05d5\u05dd", expected: 4 },
]) {
  test(`"${text}" takes ${expected} columns`, () => {
    assert.equal(textWidth(text), expected);
    assert.equal(textWidth(padToWidth(text, 10)), 10);
  });
}

test("columns of a table are aligned where names are wide", () => {
  assert.equal(
    formatFitting(
      ["NAME", "ROLE"],
      [
        ["\u65e5\u672c", "a"],
        ["ann", "b"],
      ],
      { columns: undefined, title: 0 },
    ),
    "NAME  ROLE\n\u65e5\u672c  a\nann   b\n",
  );
});
