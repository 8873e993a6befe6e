// What reaches a person of text that somebody else wrote.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging, jsonSink, textSink } from "./log.ts";
import { printable, terminalText } from "./printable.ts";

const hostile = "a\u009b31mb\u202ec\u2066d\u200fe\u0085f\u001b]0;g\u0007h\u007f";

test("controls of C0 and C1 and marks of direction are escaped", () => {
  assert.equal(printable(hostile), String.raw`a\u009b31mb\u202ec\u2066d\u200fe\u0085f\u001b]0;g\u0007h\u007f`);
  assert.equal(printable("grün\n中"), String.raw`grün\n中`);
});

for (const { name, text, expected } of [
  {
    name: "lines, tabs and colours stay",
    text: "a\tb\r\n\u001b[1;31mred\u001b[0m\n",
    expected: "a\tb\r\n\u001b[1;31mred\u001b[0m\n",
  },
  { name: "the cursor is not moved", text: "\u001b[2A\u001b[0Jx", expected: String.raw`\u001b[2A\u001b[0Jx` },
  { name: "nothing is written over", text: "good\rbad", expected: String.raw`good\rbad` },
  { name: "no title, no C1, no direction", text: hostile, expected: printable(hostile) },
]) {
  test(`on a terminal: ${name}`, () => assert.equal(terminalText(text), expected));
}

test("neither form of the log carries them, and JSON says the same", () => {
  for (const sink of [textSink, jsonSink]) {
    const lines: string[] = [];
    new Logging({ sink: sink((line) => lines.push(line)) }).logger("x").info(hostile, { host: hostile });
    assert.equal(terminalText(lines[0]!), lines[0]);
    if (sink === jsonSink) assert.equal((JSON.parse(lines[0]!) as { host: string }).host, hostile);
  }
});
