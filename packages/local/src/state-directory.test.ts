// One instance a folder, a token for its owner alone, and no left-overs of earlier runs.
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { FolderInUse, openStateDirectory } from "./state-directory.ts";

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-state-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("a folder that is in use names the process that uses it, and is free afterwards", (t) => {
  const folder = makeFolder(t);
  const state = openStateDirectory(folder);
  assert.throws(
    () => openStateDirectory(folder),
    (error) => error instanceof FolderInUse && error.pid === process.pid,
  );
  state.unlock();
  openStateDirectory(folder).unlock();
});

test("addresses and token are kept across runs, but no token that others could read", (t) => {
  const folder = makeFolder(t);
  const state = path.join(folder, ".tulle");
  const token = path.join(state, "token");
  const first = openStateDirectory(folder);
  writeFileSync(token, "secret\n", { mode: 0o600 });
  first.rememberBlock(77);
  first.unlock();
  const second = openStateDirectory(folder);
  assert.equal(readFileSync(token, "utf8"), "secret\n");
  assert.equal(second.lastBlockIndex, 77);
  second.unlock();
  chmodSync(state, 0o755);
  openStateDirectory(folder).unlock();
  assert.equal(statSync(state).mode & 0o777, 0o700);
  assert.ok(!existsSync(token));
});

test("logs and state of pods of an earlier run are gone at the next start", (t) => {
  const folder = makeFolder(t);
  const logs = path.join(folder, ".tulle", "logs");
  mkdirSync(path.join(logs, "old-pod"), { recursive: true });
  writeFileSync(path.join(logs, "control-plane.log"), "kept");
  openStateDirectory(folder).unlock();
  assert.ok(!existsSync(path.join(logs, "old-pod")));
  assert.ok(existsSync(path.join(logs, "control-plane.log")));
});

test("of pods that left, the last twenty keep their logs", (t) => {
  const state = openStateDirectory(makeFolder(t));
  for (let index = 0; index < 22; index += 1) {
    mkdirSync(path.join(state.logsFolder, `pod-${index}`));
    state.retireLogs(`pod-${index}`);
  }
  assert.ok(!existsSync(path.join(state.logsFolder, "pod-1")));
  assert.ok(existsSync(path.join(state.logsFolder, "pod-2")));
  state.unlock();
});
