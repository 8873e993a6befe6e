// How wide a terminal is, and what never reaches one.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { startProcess, waitFor } from "../../../tests/tools/processes.ts";
import { columnsOf } from "./process-context.ts";

const cases = [
  { name: "that says so", stream: { isTTY: true, columns: 40 }, expected: 40 },
  { name: "that does not know", stream: { isTTY: true, columns: 0 }, expected: 80 },
  { name: "that is none", stream: {}, expected: undefined },
];
for (const { name, stream, expected } of cases) {
  test(`a terminal ${name}`, () => assert.equal(columnsOf(stream), expected));
}

const entry = path.resolve(import.meta.dirname, "main.ts");
const steering = "\u009b31mred\u202eder";
const lines = [
  { name: "standard output", line: "analyze bad.yaml" },
  { name: "standard error", line: `get pods --dir "./${steering}"` },
];
for (const { name, line } of lines) {
  test(`what steers a terminal or turns text does not reach ${name} of one`, async (context) => {
    const folder = await mkdtemp(path.join(tmpdir(), "tulle-terminal-"));
    context.after(() => rm(folder, { recursive: true }));
    await writeFile(
      path.join(folder, "bad.yaml"),
      `apiVersion: v1\nkind: Service\nmetadata: { name: "${steering}" }\n`,
    );
    // script(1) runs a command at a terminal of its own, and writes what that is sent.
    await using command = await startProcess(
      "script",
      ["-qec", `"${process.execPath}" "${entry}" ${line}`, "/dev/null"],
      {
        cwd: folder,
        env: { TULLE_DIR: "", NO_COLOR: "1" },
      },
    );
    await command.exited;
    await waitFor(() => command.child.stdout?.closed === true, { what: "its output" });
    assert.match(command.output(), /\\u009b31mred\\u202eder/);
    // oxlint-disable-next-line no-control-regex -- control characters are what is being looked for
    assert.doesNotMatch(command.output(), /[\x80-\x9f\u202a-\u202e\u2066-\u2069]/);
  });
}
