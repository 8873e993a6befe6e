// Secrets on disk: who may read them, and what is there when a write fails.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { writeSecretFile } from "./secret-file.ts";
import { temporaryFolder } from "./testing/openssl.ts";

test("a file and its folder are their owner's alone", async (t) => {
  const file = path.join(await temporaryFolder(t), "state", "key.pem");
  await writeSecretFile(file, "secret");
  assert.equal(await readFile(file, "utf8"), "secret");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal((await stat(path.dirname(file))).mode & 0o777, 0o700);
});

test("a file that others could read is replaced by one that they cannot", async (t) => {
  const file = path.join(await temporaryFolder(t), "key.pem");
  await writeFile(file, "old");
  await chmod(file, 0o644);
  await writeSecretFile(file, "new");
  assert.equal(await readFile(file, "utf8"), "new");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
});

test("a link is replaced, not followed", async (t) => {
  const folder = await temporaryFolder(t);
  const elsewhere = path.join(folder, "elsewhere");
  await writeFile(elsewhere, "theirs");
  await symlink(elsewhere, path.join(folder, "key.pem"));
  await writeSecretFile(path.join(folder, "key.pem"), "ours");
  assert.equal(await readFile(elsewhere, "utf8"), "theirs");
});

test("a failed write leaves no draft behind", async (t) => {
  const folder = await temporaryFolder(t);
  const file = path.join(folder, "key.pem");
  await mkdir(file);
  await assert.rejects(writeSecretFile(file, "new"));
  assert.deepEqual(await readdir(folder), ["key.pem"]);
});

test("many writers leave one whole content", async (t) => {
  const folder = await temporaryFolder(t);
  const file = path.join(folder, "key.pem");
  const contents = Array.from({ length: 20 }, (_, index) => String(index).repeat(1000));
  await Promise.all(contents.map((content) => writeSecretFile(file, content)));
  assert.ok(contents.includes(await readFile(file, "utf8")));
  assert.deepEqual(await readdir(folder), ["key.pem"]);
});
