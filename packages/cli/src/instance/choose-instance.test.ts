// Which instance a command talks to, in every case of the documented order.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { processStartTime, registerInstance, writeInstance, type Instance } from "@tulle/local/instance";
import { chooseInstance, type InstanceChoice } from "./choose-instance.ts";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";

/**
 * Folders a and b with a live instance, c with a dead one, d with none, and further live ones; this process plays the
 * supervisor.
 */
async function world(
  t: TestContext,
  live: readonly string[],
): Promise<{ folder: string; env: Record<string, string> }> {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), "tulle-choose-")));
  t.after(() => rmSync(folder, { recursive: true }));
  const env = { XDG_STATE_HOME: path.join(folder, "state") };
  const startTime = (await processStartTime(process.pid))!;
  for (const name of new Set(["a", "b", "c", ...live])) {
    const dir = path.join(folder, name);
    mkdirSync(path.join(dir, ".tulle"), { recursive: true });
    mkdirSync(path.join(dir, "below"));
    if (name === "b" && !live.includes("b")) continue;
    const pidStartTime = live.includes(name) ? startTime : "1";
    const instance = { dir, stateDir: path.join(dir, ".tulle"), pid: process.pid, pidStartTime } as Instance;
    await writeInstance(instance);
    await registerInstance(instance, env);
  }
  mkdirSync(path.join(folder, "d"), { recursive: true });
  return { folder, env };
}

const cases: readonly {
  name: string;
  live: readonly string[];
  choice: (folder: string) => Partial<InstanceChoice>;
  env?: (folder: string) => Record<string, string>;
  expected: string | RegExp;
}[] = [
  { name: "--dir", live: ["a", "b"], choice: (folder) => ({ dir: "b", cwd: folder }), expected: "b" },
  {
    name: "--dir before TULLE_DIR",
    live: ["a", "b"],
    choice: (folder) => ({ dir: path.join(folder, "b") }),
    env: (folder) => ({ TULLE_DIR: path.join(folder, "a") }),
    expected: "b",
  },
  {
    name: "TULLE_DIR before the folder one is in",
    live: ["a", "b"],
    choice: (folder) => ({ cwd: path.join(folder, "a") }),
    env: (folder) => ({ TULLE_DIR: path.join(folder, "b") }),
    expected: "b",
  },
  { name: "upwards", live: ["a", "b"], choice: (folder) => ({ cwd: path.join(folder, "a", "below") }), expected: "a" },
  { name: "the only live one", live: ["a"], choice: (folder) => ({ cwd: path.join(folder, "d") }), expected: "a" },
  {
    name: "the only live one, from a folder whose instance has ended",
    live: ["a"],
    choice: (folder) => ({ cwd: path.join(folder, "c") }),
    expected: "a",
  },
  {
    name: "upwards, past a folder with other state",
    live: ["a", "b"],
    choice: (folder) => {
      mkdirSync(path.join(folder, "a", "below", ".tulle", "authorization-server"), { recursive: true });
      return { cwd: path.join(folder, "a", "below") };
    },
    expected: "a",
  },
  {
    name: "none at all, from a folder with other state",
    live: [],
    choice: (folder) => ({ cwd: path.join(folder, "b", "below") }),
    expected: /no instance is running\nStart one: tulle up <folder>/,
  },
  {
    name: "two live ones",
    live: ["a", "b"],
    choice: () => ({}),
    expected: /2 instances are running[^]*--dir \.\.\/a\n.*--dir \.\.\/b$/,
  },
  {
    name: "two live ones, far from here",
    live: ["a", "b"],
    choice: (folder) => ({ cwd: `${folder}/d${"/deeper".repeat(30)}` }),
    expected: /2 instances are running[^]*--dir \/.*\/a\n.*--dir \/.*\/b$/,
  },
  { name: "the only live one below", live: ["a", "b", "d/e"], choice: () => ({}), expected: "d/e" },
  {
    name: "the only live one below, by links to it and to this folder",
    live: ["a", "b", "linked/f"],
    choice: (folder) => {
      symlinkSync(path.join(folder, "linked"), path.join(folder, "link"));
      return { cwd: path.join(folder, "link") };
    },
    expected: "linked/f",
  },
  {
    name: "a live one in a folder whose name merely begins alike, or with dots, is not below",
    live: ["a", "d-too", "..d"],
    choice: () => ({}),
    expected: /3 instances are running, and/,
  },
  {
    name: "the only live one below that is this user's alone",
    live: ["a", "d/e", "d/f"],
    choice: (folder) => {
      chmodSync(path.join(folder, "d", "f", ".tulle"), 0o777);
      return {};
    },
    expected: "d/e",
  },
  {
    name: "two live ones below, and one elsewhere",
    live: ["a", "d/e", "d/f"],
    choice: () => ({}),
    expected: /2 instances are running below this folder, and[^]*:\n.*--dir e\n.*--dir f$/,
  },
  { name: "none at all", live: [], choice: () => ({}), expected: /no instance is running\nStart one: tulle up/ },
  {
    name: "a named one that has ended",
    live: ["a"],
    choice: (folder) => ({ dir: "c", cwd: folder }),
    expected: /nothing runs in .*\/c\n/,
  },
];

for (const { name, live, choice, env, expected } of cases) {
  test(name, async (t) => {
    const { folder, env: base } = await world(t, live);
    const chosen = chooseInstance({
      cwd: path.join(folder, "d"),
      env: { ...base, ...env?.(folder) },
      ...choice(folder),
    });
    if (typeof expected === "string") {
      assert.equal((await chosen).dir, path.join(folder, expected));
      return;
    }
    await assert.rejects(chosen, (error) => {
      assert.ok(error instanceof CommandFailure);
      assert.equal(error.exitCode, exitCodes.noInstance);
      assert.match(`${error.message}\n${error.hint}`, expected);
      return true;
    });
  });
}
