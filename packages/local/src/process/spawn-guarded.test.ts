// The promise of the guard: whatever ends the supervisor, nothing that it started goes on.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { waitUntil } from "./wait-until.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";

const moduleUrl = new URL("./spawn-guarded.ts", import.meta.url).href;

/** A parent process that starts `shellScript` under guard and then stays; the script writes process ids to `pids`. */
async function startParent(
  t: TestContext,
  shellScript: string,
): Promise<{ parent: ReturnType<typeof spawn>; pids: readonly number[] }> {
  const folder = temporaryFolder("tulle-guard-");
  const pidFile = path.join(folder, "pids");
  const program = `
    import { openSync } from "node:fs";
    import { spawnGuarded } from ${JSON.stringify(moduleUrl)};
    const logDescriptor = openSync(${JSON.stringify(path.join(folder, "log"))}, "a");
    const guarded = spawnGuarded({
      argv: ["/bin/sh", "-c", ${JSON.stringify(shellScript)}, "child", ${JSON.stringify(pidFile)}],
      cwd: ${JSON.stringify(folder)}, env: process.env, logDescriptor, inherit: [],
    });
    guarded.child.once("exit", () => guarded.releaseGuard());
    setInterval(() => {}, 1000);
  `;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "inherit" });
  t.after(() => parent.kill("SIGKILL"));
  let pids: readonly number[] = [];
  const started = (): boolean => {
    pids = readFileSync(pidFile, "utf8").trim().split("\n").map(Number);
    return pids.length === 2;
  };
  await waitUntil(started, { timeoutMs: 60_000, what: () => "the guarded program to start" });
  return { parent, pids };
}

function isAlive(pid: number): boolean {
  try {
    // A process whose parent is gone may be a zombie until init takes it: that is not alive.
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

async function assertAllEnd(pids: readonly number[]): Promise<void> {
  await waitUntil(() => !pids.some(isAlive), {
    timeoutMs: 60_000,
    what: () => `processes ${pids.filter(isAlive).join(", ")} to end`,
  });
}

// The child ignores everything it may ignore, and has a child of its own.
const stubborn = `trap '' TERM INT HUP; (trap '' TERM INT HUP; while :; do sleep 60; done) & echo $$ >> "$1"; echo $! >> "$1"; while :; do sleep 60; done`;

for (const signal of ["SIGKILL", "SIGTERM"] as const) {
  test(`a program and its children end when their supervisor is ended by ${signal}`, async (t) => {
    const { parent, pids } = await startParent(t, stubborn);
    assert.ok(pids.every(isAlive));
    parent.kill(signal);
    await assertAllEnd(pids);
  });
}

test("what a program leaves behind ends with it", async (t) => {
  const { pids } = await startParent(t, `sleep 60 & echo $$ >> "$1"; echo $! >> "$1"; exit 0`);
  await assertAllEnd(pids);
});
