// Lines of a head, cut anywhere: what it says of them is always made of bytes that have come.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FieldSection, type SectionFault } from "./field-section.ts";

const maxBytes = 4000;
const maxLines = 20;

/** Longer than the room that a section begins with. */
const long = `x: ${"a".repeat(600)}\r\n`;
const short = "GET / HTTP/1.1\r\nHost: a\r\n";

const sections: readonly {
  readonly name: string;
  readonly input: string;
  readonly fault: SectionFault | undefined;
  /** The lines that are whole. */
  readonly text: string;
}[] = [
  { name: "whole", input: `${short}${long}\r\n`, fault: undefined, text: `${short}${long}` },
  { name: "a bare LF behind short lines", input: `${short}x\n`, fault: "bare_lf", text: short },
  { name: "a bare LF behind a long line", input: `${short}${long}x\n`, fault: "bare_lf", text: short + long },
  {
    name: "too many lines",
    input: `${"a: b\r\n".repeat(30)}\r\n`,
    fault: "too_many_lines",
    text: "a: b\r\n".repeat(21),
  },
  {
    name: "too many long lines",
    input: `${short}${long.repeat(10)}`,
    fault: "too_large",
    text: short + long.repeat(6),
  },
  { name: "a line without an end", input: short + "a".repeat(5000), fault: "too_large", text: short },
];

/** Takes pieces as they come. */
function taken(pieces: readonly string[]): FieldSection {
  const section = new FieldSection(maxBytes, maxLines);
  for (const piece of pieces) {
    if (piece === "") continue;
    if (section.take(Buffer.from(piece, "latin1"), 0) >= 0 || section.fault !== undefined) break;
  }
  return section;
}

for (const { name, input, fault, text } of sections) {
  test(name, () => {
    for (let cut = 0; cut < input.length; cut += 1) {
      const section = taken([input.slice(0, cut), input.slice(cut)]);
      assert.equal(section.fault, fault, `cut ${cut}`);
      assert.equal(section.text, text, `cut ${cut}`);
    }
    const section = taken(input.split(""));
    assert.equal(section.fault, fault, "byte by byte");
    assert.equal(section.text, text, "byte by byte");
  });
}
