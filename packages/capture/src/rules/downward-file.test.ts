// Values as Go quotes them: each expected text is what strconv.Quote was given.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDownwardFile } from "./downward-file.ts";

const values: readonly { readonly name: string; readonly text: string; readonly expected: string }[] = [
  { name: "plain", text: '"shop"', expected: "shop" },
  { name: "empty", text: '""', expected: "" },
  { name: "quotes and backslashes", text: String.raw`"{\"a\":\"\\\"}"`, expected: String.raw`{"a":"\"}` },
  { name: "lines", text: String.raw`"a\nb\tc\r"`, expected: "a\nb\tc\r" },
  {
    name: "what nobody sees",
    text: String.raw`"\a\b\f\v\x00\x7f\u200b\U000e0001"`,
    expected: "\u0007\b\f\v\0\u007f\u200b\u{e0001}",
  },
  { name: "letters of others", text: '"größer 日本 😀"', expected: "größer 日本 😀" },
  { name: "an equals sign", text: '"a=b"', expected: "a=b" },
];
for (const { name, text, expected } of values) {
  test(name, () => assert.deepEqual(parseDownwardFile(`x/y=${text}\nz="1"`), { "x/y": expected, z: "1" }));
}

for (const text of ["80", '"open', String.raw`"\q"`, String.raw`"\U00110000"`, '"a"b"']) {
  test(`${text} is refused`, () =>
    assert.throws(() => parseDownwardFile(`x=${text}`), /^SyntaxError: x has no quoted/));
}
