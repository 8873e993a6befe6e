// Folders, files and sockets of one user: the modes they have whatever the umask and whatever was there, and what is
// refused in words.
import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { temporaryFolder } from "../testing/openssl.ts";
import {
  findSocketPath,
  isOwnFolder,
  makeOwnFolder,
  makeSocketPath,
  NotOwn,
  readOwnFile,
  removeSocketFolder,
  writeSecretFile,
} from "./index.ts";

const modeOf = (file: string): string => (statSync(file).mode & 0o777).toString(8);
/** Only root can give a file away; without it, what belongs to root stands for another user's. */
const isRoot = process.getuid?.() === 0;
const somebody = 12_345;

function underUmask(context: TestContext, umask: number): void {
  const before = process.umask(umask);
  context.after(() => process.umask(before));
}

for (const umask of [0o000, 0o022, 0o077]) {
  test(`under umask ${umask.toString(8).padStart(3, "0")} folders and files have the modes that are asked for`, async (context) => {
    const base = path.join(await temporaryFolder(context), "a");
    underUmask(context, umask);
    const folder = path.join(base, "b");
    assert.equal(makeOwnFolder(folder), false);
    assert.deepEqual([modeOf(base), modeOf(folder)], ["700", "700"]);
    await writeSecretFile(path.join(folder, "key"), "secret");
    await writeSecretFile(path.join(folder, "root"), "public", 0o644);
    assert.deepEqual([modeOf(path.join(folder, "key")), modeOf(path.join(folder, "root"))], ["600", "644"]);
  });
}

test("a folder where none can be made is an error, and no endless loop", () => {
  assert.throws(() => makeOwnFolder("/proc/tulle/state"), { code: "ENOENT" });
});

test("a folder of ours that others could reach is closed, with what is in it", async (context) => {
  const folder = path.join(await temporaryFolder(context), "state");
  mkdirSync(path.join(folder, "ca"), { recursive: true });
  const key = path.join(folder, "ca", "key");
  writeFileSync(key, "secret");
  for (const [entry, mode] of [
    [key, 0o666],
    [path.dirname(key), 0o777],
    [folder, 0o777],
  ] as const) {
    chmodSync(entry, mode);
  }
  assert.equal(makeOwnFolder(folder), true, "what was in it may be known");
  assert.deepEqual([modeOf(folder), modeOf(path.dirname(key)), modeOf(key)], ["700", "700", "600"]);
  assert.equal(makeOwnFolder(folder), false);
});

test("what is no folder of ours is refused", async (context) => {
  const base = await temporaryFolder(context);
  const real = path.join(base, "real");
  mkdirSync(real);
  symlinkSync(real, path.join(base, "link"));
  writeFileSync(path.join(base, "file"), "");
  chmodSync((mkdirSync(path.join(base, "open")), path.join(base, "open")), 0o777);
  for (const [name, why] of [
    ["link", /is a symbolic link/],
    ["file", /EEXIST/],
  ] as const) {
    assert.throws(() => makeOwnFolder(path.join(base, name)), why);
  }
  assert.throws(() => isOwnFolder(path.join(base, "link")), /is a symbolic link/);
  assert.throws(() => isOwnFolder(path.join(base, "open")), /may be written by other users \(mode 777\)/);
  assert.equal(isOwnFolder(path.join(base, "none")), false);
  assert.equal(isOwnFolder(real), true);
});

test("another user's folder, file, or file in a folder of ours is refused by name", async (context) => {
  const base = await temporaryFolder(context);
  const names = isRoot ? `uid ${somebody}` : "root \\(uid 0\\)";
  const foreign = isRoot ? path.join(base, "foreign") : "/usr";
  if (isRoot) {
    mkdirSync(foreign, { mode: 0o700 });
    chownSync(foreign, somebody, somebody);
  }
  const why = new RegExp(`belongs to user ${names}, and this is user `);
  assert.throws(() => makeOwnFolder(foreign), why);
  assert.throws(() => isOwnFolder(foreign), why);
  assert.throws(() => readOwnFile(isRoot ? foreign : "/etc/hostname"), isRoot ? /is no file/ : why);
  if (!isRoot) return;
  const loose = path.join(base, "loose");
  mkdirSync(loose);
  chmodSync(loose, 0o777);
  const planted = path.join(loose, "token");
  writeFileSync(planted, "known");
  chownSync(planted, somebody, somebody);
  assert.throws(() => readOwnFile(planted), why);
  for (const time of ["first", "second"]) {
    assert.throws(() => makeOwnFolder(loose), /others could write to .*loose until now: remove it/, `the ${time} time`);
  }
});

test("a file is read only where nobody else can have written it", async (context) => {
  const base = await temporaryFolder(context);
  const file = path.join(base, "instance.json");
  writeFileSync(file, "{}", { mode: 0o600 });
  assert.deepEqual(readOwnFile(file), { text: "{}", isOpenToOthers: false });
  chmodSync(file, 0o644);
  assert.deepEqual(readOwnFile(file), { text: "{}", isOpenToOthers: true });
  chmodSync(file, 0o660);
  assert.throws(() => readOwnFile(file), /may be written by other users \(mode 660\)/);
  symlinkSync(file, path.join(base, "link"));
  assert.throws(() => readOwnFile(path.join(base, "link")), /is a symbolic link/);
  assert.throws(() => readOwnFile(base), /is no file/);
  assert.equal(readOwnFile(path.join(base, "none")), undefined);
});

async function deepFolder(context: TestContext): Promise<string> {
  const folder = path.join(realpathSync(await temporaryFolder(context)), "deep".repeat(40));
  mkdirSync(folder, { mode: 0o700 });
  return folder;
}

test("a socket lies in the state folder where the path is short enough", async (context) => {
  const folder = realpathSync(await temporaryFolder(context));
  assert.equal(makeSocketPath(folder, "a.sock", {}), path.join(folder, "a.sock"));
  assert.equal(findSocketPath(folder, "a.sock", {}), path.join(folder, "a.sock"));
});

test("a socket of a long path lies in the user's runtime folder, and both ends derive where", async (context) => {
  const folder = await deepFolder(context);
  const runtime = await temporaryFolder(context);
  chmodSync(runtime, 0o700);
  const env = { XDG_RUNTIME_DIR: runtime };
  underUmask(context, 0);
  const socket = makeSocketPath(folder, "a.sock", env);
  assert.match(socket.slice(runtime.length), /^\/tulle\/[0-9a-f]{16}\/a\.sock$/);
  assert.deepEqual([modeOf(path.dirname(socket)), modeOf(path.join(runtime, "tulle"))], ["700", "700"]);
  assert.equal(findSocketPath(folder, "a.sock", env), socket);
  removeSocketFolder(folder, env);
  assert.ok(!existsSync(path.dirname(socket)));
});

test("without a runtime folder of this user's it lies below the temporary one, and others find it there", async (context) => {
  const folder = await deepFolder(context);
  const runtime = await temporaryFolder(context);
  chmodSync(runtime, 0o755);
  const socket = makeSocketPath(folder, "a.sock", { XDG_RUNTIME_DIR: runtime });
  context.after(() => rmSync(path.dirname(socket), { recursive: true }));
  assert.ok(socket.startsWith(path.join(os.tmpdir(), `tulle-${process.getuid!()}`)), socket);
  const server = createServer().listen({ path: socket });
  await new Promise((resolve) => server.once("listening", resolve));
  context.after(() => server.close());
  const own = await temporaryFolder(context);
  chmodSync(own, 0o700);
  assert.equal(findSocketPath(folder, "a.sock", { XDG_RUNTIME_DIR: own }), socket);
});

test("a folder that somebody has put in the place of ours is refused", async (context) => {
  const folder = await deepFolder(context);
  const runtime = await temporaryFolder(context);
  chmodSync(runtime, 0o700);
  const env = { XDG_RUNTIME_DIR: runtime };
  const taken = path.dirname(makeSocketPath(folder, "a.sock", env));
  removeSocketFolder(folder, env);
  symlinkSync(folder, taken);
  assert.throws(() => makeSocketPath(folder, "a.sock", env), NotOwn);
  assert.throws(() => findSocketPath(folder, "a.sock", env), NotOwn);
});

/** The temporary folder of this process, for the length of a test. */
function setTemporaryFolder(context: TestContext, folder: string): void {
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = folder;
  context.after(() => {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  });
}

test("a folder of ours below one that somebody else has made is neither asked nor removed", async (context) => {
  const folder = await deepFolder(context);
  const temporary = await temporaryFolder(context);
  setTemporaryFolder(context, temporary);
  const socket = makeSocketPath(folder, "a.sock", {});
  const server = createServer().listen({ path: socket });
  await new Promise((resolve) => server.once("listening", resolve));
  context.after(() => server.close());
  assert.equal(findSocketPath(folder, "a.sock", {}), socket);
  const base = path.dirname(path.dirname(socket));
  // Root can make it another user's; for others one that all may write to is as bad.
  if (isRoot) chownSync(base, somebody, somebody);
  else chmodSync(base, 0o777);
  assert.throws(() => findSocketPath(folder, "a.sock", {}), NotOwn);
  removeSocketFolder(folder, {});
  assert.ok(existsSync(socket));
});

test("who has a runtime folder does not look at the temporary one", async (context) => {
  const folder = await deepFolder(context);
  const runtime = await temporaryFolder(context);
  chmodSync(runtime, 0o700);
  setTemporaryFolder(context, path.join(runtime, "gone"));
  const env = { XDG_RUNTIME_DIR: runtime };
  const socket = makeSocketPath(folder, "a.sock", env);
  const server = createServer().listen({ path: socket });
  await new Promise((resolve) => server.once("listening", resolve));
  context.after(() => server.close());
  assert.equal(findSocketPath(folder, "a.sock", env), socket);
  assert.throws(() => makeSocketPath(folder, "a.sock", {}), /gone is not there: set XDG_RUNTIME_DIR or TMPDIR/);
});
