// What is written is read again, and what is damaged is nothing.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { parseKeySet } from "@tulle/config";
import { KeysFile, readSavedKeys } from "./saved-keys.ts";

const key = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
const parsed = parseKeySet(JSON.stringify({ keys: [key] }));
assert.ok("text" in parsed);
const jwks = parsed.text;

let folder = "";
before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "tulle-keys-"));
});
after(() => rm(folder, { recursive: true }));

test("the newest version is there in the end", async () => {
  const file = path.join(folder, "keys.json");
  const problems: unknown[] = [];
  const keys = new KeysFile(file, (error) => problems.push(error));
  for (const fetchedAtMs of [1, 2, 3]) keys.save(new Map([["https://a", { jwks, fetchedAtMs }]]));
  await keys.close();
  assert.deepEqual([...(await readSavedKeys(file))], [["https://a", { jwks, fetchedAtMs: 3 }]]);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.deepEqual(problems, []);
});

test("a folder that is gone is told of", async () => {
  const problems: unknown[] = [];
  const keys = new KeysFile(path.join(folder, "gone", "keys.json"), (error) => problems.push(error));
  keys.save(new Map());
  await keys.close();
  assert.equal(problems.length, 1);
});

const damaged: readonly { readonly name: string; readonly text: string }[] = [
  { name: "cut short", text: '{"https://a":{"jwks":"' },
  { name: "another kind of document", text: "[1]" },
  { name: "no keys", text: JSON.stringify({ "https://a": { jwks: "{}", fetchedAtMs: 1 } }) },
  { name: "no time", text: JSON.stringify({ "https://a": { jwks } }) },
];

for (const { name, text } of damaged) {
  test(`damaged: ${name}`, async () => {
    const file = path.join(folder, "damaged.json");
    await writeFile(file, text);
    assert.equal((await readSavedKeys(file)).size, 0);
  });
}

test("no file", async () => assert.equal((await readSavedKeys(path.join(folder, "none"))).size, 0));
