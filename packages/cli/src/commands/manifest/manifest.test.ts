// `tulle manifest generate`: what is printed is for other programs to read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import { Shell } from "../../testing/shell.ts";

test("what is printed means the same to readers of YAML 1.1, such as kubectl, and of YAML 1.2", async () => {
  const { stdout, exitCode } = await new Shell(import.meta.dirname, undefined).run("manifest generate");
  assert.equal(exitCode, 0);
  const [old, current] = (["1.1", "1.2"] as const).map((version) =>
    parseAllDocuments(stdout, { version }).map((document) => document.toJS() as unknown),
  );
  assert.ok(old!.length > 5);
  assert.deepEqual(old, current);
});
