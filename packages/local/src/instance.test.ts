// What is written down of an instance, and what files that are not sound say.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import {
  type Instance,
  liveInstances,
  processStartTime,
  readInstance,
  registerInstance,
  registryFolder,
  removeInstance,
  writeInstance,
} from "./instance.ts";
import { mountTinyDisk } from "../../../tests/tools/tiny-disk.ts";
import { CannotStart } from "./cannot-start.ts";
import { Supervisor } from "./supervisor.ts";

async function thisProcess(dir: string): Promise<Instance> {
  const pidStartTime = (await processStartTime(process.pid))!;
  return {
    dir,
    stateDir: path.join(dir, ".tulle"),
    pid: process.pid,
    pidStartTime,
    apiUrl: "http://127.0.0.1:1",
    xdsAddress: "127.0.0.1:1",
    publishedPorts: [],
    ready: false,
    startedAt: "2026-11-20T00:00:00Z",
    developmentRootFile: "/state/tulle/development-ca/root-cert.pem",
  };
}

test("an instance is found until it is removed, and a broken file is no instance", async (context) => {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-instance-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  const env = { XDG_STATE_HOME: path.join(folder, "state") };
  const instance = await thisProcess(folder);
  await mkdir(instance.stateDir);
  await writeInstance(instance);
  assert.deepEqual(await readInstance(folder), instance);
  assert.deepEqual(await liveInstances(env), []);
  await registerInstance(instance, env);
  await writeFile(path.join(registryFolder(env), "broken.json"), "{");
  assert.deepEqual(await liveInstances(env), [instance]);
  await writeFile(path.join(instance.stateDir, "instance.json"), "{");
  assert.equal(await readInstance(folder), undefined);
  await removeInstance(instance, env);
  assert.deepEqual(await liveInstances(env), []);
});

function start(dir: string): Promise<Supervisor> {
  return Supervisor.start({
    dir,
    proxy: "tulle",
    restart: "never",
    publish: [],
    fresh: false,
    env: {},
    tulleCommand: ["false"],
    tulleCompileCache: dir,
    onEvent: () => undefined,
  });
}

test("a folder that cannot hold the state is an error that says what to do", async (context) => {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-instance-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  await writeFile(path.join(folder, ".tulle"), "in the way");
  await assert.rejects(start(folder), (error) => {
    assert.ok(error instanceof CannotStart);
    assert.match(error.message, /^the state of .* cannot be written: E/);
    assert.match(error.suggestion, /run a folder that you may write to/);
    return true;
  });
});

test("a full disk is told as one, since another folder would be no remedy", async (context) => {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-instance-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  await using disk = await mountTinyDisk(folder, 64 * 1024);
  disk.fill();
  await assert.rejects(start(folder), (error) => {
    assert.ok(error instanceof CannotStart);
    assert.match(error.message, /^the state of .* cannot be written: ENOSPC/);
    assert.match(error.suggestion, /^The disk is full/);
    return true;
  });
});

test("a control plane that has ended for good is not waited for", async (context) => {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-instance-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  const supervisor = await start(folder);
  context.after(() => supervisor.stop());
  await assert.rejects(supervisor.ready(context.signal), /^Hopeless: control plane ended \(exit status 1\)/);
});
