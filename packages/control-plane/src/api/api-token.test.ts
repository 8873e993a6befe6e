// The token is made once, and anew where others could have read it.
import assert from "node:assert/strict";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { StateFolder } from "../state/state-folder.ts";
import { readOrMakeToken } from "./api-token.ts";

test("the token of a state directory", async () => {
  const folder = temporaryFolder("tulle-token-");
  const file = path.join(folder, "token");
  const told: string[] = [];
  const read = () => readOrMakeToken(new StateFolder(folder, { warning: (message) => void told.push(message) }));
  const made = await read();
  assert.equal(await readFile(file, "utf8"), `${made}\n`);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal(await read(), made);

  await chmod(file, 0o644);
  const afterFile = await read();
  assert.notEqual(afterFile, made);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.deepEqual(told, []);

  await chmod(folder, 0o755);
  assert.notEqual(await read(), afterFile);
  assert.match(told.join(), /other users could reach the state directory/);

  for (const mode of [0o600, 0o644]) {
    await writeFile(file, "\n");
    await chmod(file, mode);
    await assert.rejects(read(), { message: `${file} is empty: remove it, and a new token is made` });
  }
});
