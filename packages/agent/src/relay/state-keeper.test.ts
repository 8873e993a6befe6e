// A disk that is full costs the saved state, and nothing else: told once, and once when it can be written again.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { systemClock } from "@tulle/timing";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { mountTinyDisk } from "../../../../tests/tools/tiny-disk.ts";
import { loadState } from "./saved-state.ts";
import { StateKeeper } from "./state-keeper.ts";

const nodeId = "sidecar~127.0.0.1~a.b~b.svc.cluster.local";

function newFolder(context: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-keeper-"));
  context.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("a full disk is told once, and the state is written when there is room again", async (context) => {
  const folder = newFolder(context);
  await using disk = await mountTinyDisk(folder, 64 * 1024);
  const file = path.join(folder, "xds-state");
  const entries: LogEntry[] = [];
  const keeper = new StateKeeper({
    path: file,
    nodeId,
    initial: new Map(),
    clock: systemClock,
    log: new Logging({ sink: (entry) => entries.push(entry) }).logger("relay"),
    minIntervalMs: 0,
  });
  const put = async (versionInfo: string): Promise<void> => {
    keeper.replace("CDS", versionInfo, new Map([["a", { value: Buffer.alloc(2000, versionInfo) }]]));
    await keeper.flush();
  };
  const saved = (): string | undefined => {
    const loaded = loadState(file, nodeId);
    return loaded.kind === "loaded" ? loaded.state.get("CDS")?.versionInfo : loaded.kind;
  };
  const told = (): readonly string[] =>
    entries.map(({ level, message }) => `${level}: ${message.replace(/: .*/s, "")}`);

  await put("1");
  assert.equal(saved(), "1");
  disk.fill();
  for (const version of ["2", "3", "4"]) await put(version);
  assert.equal(saved(), "1", "the last state that could be written");
  assert.deepEqual(told(), ["error: cannot save the state"]);
  disk.free();
  await put("5");
  assert.equal(saved(), "5");
  await put("6");
  assert.deepEqual(told(), ["error: cannot save the state", "info: the state can be saved again"]);
  assert.equal(statSync(file).mode & 0o777, 0o600);
});

test("what could not be written is tried again, though nothing changes any more", async (context) => {
  const folder = newFolder(context);
  const file = path.join(folder, "not-there-yet", "xds-state");
  const clock = new ManualClock();
  const log = new Logging({ level: "off" }).logger("relay");
  const keeper = new StateKeeper({ path: file, nodeId, initial: new Map(), clock, log });
  keeper.replace("CDS", "1", new Map());
  const tries = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index += 1) {
      // The next try is armed once the one before has failed.
      await waitFor(() => clock.waiting.length > 0, { what: "the next try" });
      clock.pass(5000);
    }
  };
  await tries(3);
  // The third may still be under way, and would find the folder.
  await waitFor(() => clock.waiting.length > 0, { what: "the third try to fail" });
  mkdirSync(path.dirname(file));
  await tries(1);
  await waitFor(() => existsSync(file), { what: "the state on disk" });
  await keeper.flush();
  assert.equal(clock.waiting.length, 0);
});

test("the state of Secrets is kept as that of every other resource", async (context) => {
  const file = path.join(newFolder(context), "xds-state");
  const keeper = new StateKeeper({
    path: file,
    nodeId,
    initial: new Map(),
    clock: systemClock,
    log: new Logging({ level: "off" }).logger("relay"),
  });
  const value = Buffer.from("a key");
  keeper.merge("SDS", "1", new Map([["kubernetes://shop-cert", { value }]]));
  await keeper.flush();
  const loaded = loadState(file, nodeId);
  assert.ok(loaded.kind === "loaded");
  assert.deepEqual(loaded.state.get("SDS")?.resources.get("kubernetes://shop-cert")?.value, value);
  assert.equal(statSync(file).mode & 0o777, 0o600);
});
