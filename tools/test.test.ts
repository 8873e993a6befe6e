// What `npm test` says of its own command line, before it sets up or runs anything.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { test } from "node:test";

const cases: readonly { flag: string; exitCode: number; stdout: RegExp; stderr: RegExp }[] = [
  { flag: "--help", exitCode: 0, stdout: /^Usage: npm test/, stderr: /^$/ },
  { flag: "-h", exitCode: 0, stdout: /^Usage: npm test/, stderr: /^$/ },
  {
    flag: "--lnog",
    exitCode: 2,
    stdout: /^$/,
    stderr: /^Unknown option '--lnog'.*\n\nUsage: npm test[^]*such as oauth2\.\n$/,
  },
];

for (const { flag, exitCode, stdout, stderr } of cases) {
  test(`npm test -- ${flag}`, () => {
    const ran = spawnSync(process.execPath, [path.join(import.meta.dirname, "test.ts"), flag], { encoding: "utf8" });
    assert.equal(ran.status, exitCode);
    assert.match(ran.stdout, stdout);
    assert.match(ran.stderr, stderr);
  });
}
