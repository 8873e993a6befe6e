// Lines that cannot be written are counted, and the process goes on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { lineWriter } from "./write-lines.ts";

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}

const cases = [
  { name: "all is well", outcomes: [], lines: 2, expected: ["line 0\n", "line 1\n"] },
  {
    name: "a disk that is full for two lines",
    outcomes: ["ok", "ENOSPC", "ENOSPC", "ok", "ok"],
    lines: 4,
    expected: ["line 0\n", "(2 lines could not be written here)\n", "line 3\n"],
  },
  {
    name: "a disk that takes the notice and no more",
    outcomes: ["ENOSPC", "ok", "ENOSPC", "ok", "ok"],
    lines: 3,
    expected: ["(1 lines could not be written here)\n", "(1 lines could not be written here)\n", "line 2\n"],
  },
  { name: "a slow reader gets the line a moment later", outcomes: ["EAGAIN", "ok"], lines: 1, expected: ["line 0\n"] },
  { name: "a reader that has gone", outcomes: ["EPIPE", "EPIPE", "EPIPE"], lines: 3, expected: [] },
];

for (const { name, outcomes, lines, expected } of cases) {
  test(name, () => {
    const written: string[] = [];
    let calls = 0;
    const write = lineWriter(7, (descriptor, text) => {
      const outcome = outcomes[calls++] ?? "ok";
      if (outcome !== "ok") throw failure(outcome);
      assert.equal(descriptor, 7);
      return written.push(text);
    });
    for (let index = 0; index < lines; index += 1) write(`line ${index}\n`);
    assert.deepEqual(written, expected);
  });
}
