// A folder that is followed goes on being followed, whatever becomes of one change.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { systemClock } from "@tulle/timing";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { ManifestFolder } from "./manifest-folder.ts";

test("a change that cannot be taken is told and tried again, and later ones are taken", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-manifests-"));
  t.after(() => rm(folder, { recursive: true }));
  const entries: LogEntry[] = [];
  const seen: string[] = [];
  let failures = 0;
  // Time passes at once: the pause before the next attempt is over as soon as it begins.
  const clock = { ...systemClock, after: (_ms: number, run: () => void) => systemClock.after(0, run) };
  const followed = new ManifestFolder({
    folder,
    clock,
    log: new Logging({ sink: (entry) => entries.push(entry) }).logger("store"),
    onLoad: ({ resources }) => {
      if (seen.length > 0 && failures < 2) {
        failures += 1;
        return Promise.reject(new Error("no thread to be had"));
      }
      seen.push([...resources.keys()].join());
      return Promise.resolve();
    },
  });
  await followed.start();
  t.after(() => followed.close());
  const write = (name: string): Promise<void> =>
    writeFile(path.join(folder, `${name}.yaml`), `apiVersion: v1\nkind: Namespace\nmetadata: { name: ${name} }\n`);
  await write("first");
  await waitFor(() => seen.at(-1)?.includes("first") === true, { what: "the change after two failures" });
  assert.equal(failures, 2);
  assert.match(JSON.stringify(entries), /could not be taken, and is tried again.*no thread to be had/);
  await write("second");
  await waitFor(() => seen.at(-1)?.includes("second") === true, { what: "the next change" });
});

test("a folder whose first load fails is not followed", async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-manifests-"));
  t.after(() => rm(folder, { recursive: true }));
  const log = new Logging({ level: "off" }).logger("store");
  const onLoad = (): Promise<void> => Promise.reject(new Error("nowhere to write"));
  const followed = new ManifestFolder({ folder, clock: systemClock, log, onLoad });
  await assert.rejects(followed.start(), /nowhere to write/);
  await followed.close();
});
