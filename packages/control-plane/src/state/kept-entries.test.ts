// What is written is read again, and what is damaged is nothing.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { parseKeySet } from "@tulle/config";
import { parseSavedKeySet, type SavedKeySet } from "../jwks/saved-key-set.ts";
import { parseSavedProvider } from "../login-providers/saved-provider.ts";
import { KeptEntries } from "./kept-entries.ts";
import { StateFolder } from "./state-folder.ts";

const key = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
const parsed = parseKeySet(JSON.stringify({ keys: [key] }));
assert.ok("text" in parsed);
const jwks = parsed.text;

let folder = "";
before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "tulle-kept-"));
});
after(() => rm(folder, { recursive: true }));

function open<Value>(name: string, parse: (value: unknown) => Value | undefined, problems: unknown[] = []) {
  const texts = new StateFolder(folder, { warning: () => undefined });
  return KeptEntries.open({ texts, name, parse, onProblem: (error) => problems.push(error) });
}

test("the newest version is there in the end", async () => {
  const problems: unknown[] = [];
  const keys = await open("keys.json", parseSavedKeySet, problems);
  assert.equal(keys.saved.size, 0);
  for (const fetchedAtMs of [1, 2, 3]) keys.save(new Map([["https://a", { jwks, fetchedAtMs }]]));
  await keys.close();
  const again = await open("keys.json", parseSavedKeySet);
  assert.deepEqual([...again.saved], [["https://a", { jwks, fetchedAtMs: 3 }]]);
  assert.equal((await stat(path.join(folder, "keys.json"))).mode & 0o777, 0o600);
  assert.deepEqual(problems, []);
});

test("what cannot be written is told of, and written with the next change", async () => {
  const written: string[] = [];
  const problems: unknown[] = [];
  let isFull = true;
  const write = async (_name: string, text: string): Promise<void> => {
    if (isFull) throw new Error("the disk is full");
    written.push(text);
  };
  const texts = { read: async () => undefined, write };
  const onProblem = (error: unknown): void => void problems.push(error);
  const keys = await KeptEntries.open<SavedKeySet>({ texts, name: "keys.json", parse: parseSavedKeySet, onProblem });
  keys.save(new Map());
  await keys.close();
  assert.equal(problems.length, 1);
  isFull = false;
  keys.save(new Map([["https://a", { jwks, fetchedAtMs: 4 }]]));
  await keys.close();
  assert.equal(written.length, 1);
});

const damaged: readonly { readonly name: string; readonly text: string }[] = [
  { name: "empty", text: "" },
  { name: "nothing", text: "null" },
  { name: "a text", text: '"x"' },
  { name: "cut short", text: '{"https://a":{"jwks":"' },
  { name: "another kind of document", text: "[1]" },
  { name: "no keys", text: JSON.stringify({ "https://a": { jwks: "{}", fetchedAtMs: 1 } }) },
  { name: "no time", text: JSON.stringify({ "https://a": { jwks } }) },
];

for (const { name, text } of damaged) {
  test(`damaged: ${name}`, async () => {
    await writeFile(path.join(folder, "damaged.json"), text, { mode: 0o600 });
    assert.equal((await open("damaged.json", parseSavedKeySet)).saved.size, 0);
  });
}

test("endpoints of providers are not believed blindly", async () => {
  const text = '{"a":{"tokenEndpoint":"javascript:1","authorizationEndpoint":"https://a.test/a"},"b":1}';
  await writeFile(path.join(folder, "providers.json"), text, { mode: 0o600 });
  const { saved } = await open("providers.json", parseSavedProvider);
  assert.deepEqual([...saved], [["a", { authorizationEndpoint: "https://a.test/a" }]]);
});
