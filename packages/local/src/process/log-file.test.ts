// Logs stay bounded while a process writes to them, and give the words that say why it ended.
import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { LogFile } from "./log-file.ts";

function open(t: TestContext): LogFile {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-log-"));
  const log = new LogFile(path.join(folder, "pod", "app.log"));
  t.after(() => {
    log.close();
    rmSync(folder, { recursive: true });
  });
  return log;
}

test("a log that has grown too long is moved aside, and what comes next begins a new one", (t) => {
  const log = open(t);
  log.write("0123456789");
  log.bound(10);
  assert.equal(readFileSync(log.path, "utf8"), "0123456789");
  log.write("abc");
  log.bound(10);
  assert.equal(readFileSync(`${log.path}.1`, "utf8"), "3456789abc");
  log.write("next");
  assert.equal(readFileSync(log.path, "utf8"), "next");
});

const endings = [
  { name: "the last line", text: "one\ntwo\n\n", expected: "two" },
  { name: "nothing", text: "", expected: "" },
  {
    name: "Node's uncaught errors",
    text: "file.js:3\n    throw x;\n    ^\n\nError: no port\n    at a (b:1:2)\n    at c {\n  code: 'X'\n}\n\nNode.js v26.10.0\n",
    expected: "Error: no port",
  },
  {
    name: "no part of a line",
    text: `[begin] and the end of it${"\n[2026-11-26T12:24:26.078Z] GET /".repeat(200)}`,
    expected: "[2026-11-26T12:24:26.078Z] GET /",
  },
  { name: "a long line", text: "x".repeat(1000), expected: "x".repeat(300) },
];
for (const { name, text, expected } of endings) {
  test(`last words: ${name}`, (t) => {
    const log = open(t);
    appendFileSync(log.path, text);
    assert.equal(log.lastWords(), expected);
  });
}
