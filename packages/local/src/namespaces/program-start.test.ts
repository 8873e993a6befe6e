// What leads a program into its pod, run by the real programs of the system: it takes root, and no network of its own.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { ToolUnavailable } from "../../../../tests/tools/tool-unavailable.ts";
import type { ProgramUser } from "../network/pod-network.ts";
import { programEntry, proxyUser } from "./program-start.ts";
import { findSystemPrograms } from "./system-programs.ts";

const nobody = 65_534;
const spaces = { network: "/proc/self/ns/net", mounts: "/proc/self/ns/mnt" };
let folder: string;

before(() => {
  if (process.getuid?.() !== 0) throw new ToolUnavailable("namespaces", "it takes root to enter them");
  folder = mkdtempSync(path.join(tmpdir(), "tulle-program-start-"));
  chmodSync(folder, 0o777);
});
after(() => rmSync(folder, { recursive: true, force: true }));

function run(user: ProgramUser, env: Readonly<Record<string, string>>, ...argv: readonly string[]): string {
  const searchPath = "/usr/sbin:/usr/bin:/sbin:/bin";
  const entry = programEntry(findSystemPrograms(searchPath), spaces, {
    user,
    cwd: folder,
    env: { PATH: searchPath, ...env },
  });
  const [program = "", ...args] = [...entry.enter, ...argv];
  const { status, stdout, stderr } = spawnSync(program, args, { env: { ...entry.env }, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

test("what the loader reads is read in the program alone, not in what leads to it as root", () => {
  const variables = {
    LD_DEBUG: "files",
    LD_DEBUG_OUTPUT: path.join(folder, "loaded"),
    LD_LIBRARY_PATH: folder,
    A: "b",
  };
  const found = run({ uid: nobody, gid: nobody }, variables, "printenv", ...Object.keys(variables));
  assert.deepEqual(found.split("\n"), Object.values(variables));
  const loaded = readdirSync(folder).filter((name) => name.startsWith("loaded."));
  assert.deepEqual(
    loaded.map((name) => statSync(path.join(folder, name)).uid),
    [nobody],
  );
});

test("a file that gives others its user gives a program of root none", () => {
  const file = path.join(folder, "made");
  copyFileSync("/usr/bin/id", file);
  chownSync(file, proxyUser, proxyUser);
  chmodSync(file, 0o6755);
  assert.equal(run({}, {}, file, "-u"), "0");
  assert.equal(run({}, {}, file, "-g"), "0");
});
