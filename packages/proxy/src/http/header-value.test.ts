// What bytes of a head mean in a log.
import assert from "node:assert/strict";
import { test } from "node:test";
import { textOfRuns, utf8AsLatin1 } from "./header-value.ts";

for (const { name, line, expected } of [
  { name: "plain text", line: 'GET /a "curl"', expected: 'GET /a "curl"' },
  { name: "UTF-8 is encoded once", line: `"${utf8AsLatin1("grün 中 🙂")}" -`, expected: '"grün 中 🙂" -' },
  { name: "bytes that are no UTF-8 stay told apart", line: `"${utf8AsLatin1("ü")}" "\xfc"`, expected: '"ü" "\xfc"' },
  { name: "beside text that is not of bytes", line: `中 ${utf8AsLatin1("中")}`, expected: "中 中" },
]) {
  test(`a log's line: ${name}`, () => assert.equal(textOfRuns(line), expected));
}
