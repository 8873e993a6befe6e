// What is read back from disk, and what is refused and set aside.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { type SavedState, decodeState, encodeState, loadState, writeState } from "./saved-state.ts";

const node = "sidecar~127.0.0.1~a.b~b.svc.cluster.local";
const state: SavedState = new Map([
  ["CDS", { versionInfo: "v1", resources: new Map([["outbound|80||a", { value: Buffer.from([1, 2, 0xff]) }]]) }],
  ["RDS", { versionInfo: "v2", resources: new Map([["http_proxy", { value: Buffer.alloc(0) }]]) }],
]);
const good = encodeState(state, node);
const text = good.toString("latin1");

function plain(read: SavedState | string): unknown {
  if (typeof read === "string") return read;
  return [...read].map(([type, { versionInfo, resources }]) => [
    type,
    versionInfo,
    [...resources].map(([name, { value }]) => [name, Buffer.from(value).toString("hex")]),
  ]);
}

test("a state is read back as it was written", () => {
  assert.deepEqual(plain(decodeState(good, node)), [
    ["CDS", "v1", [["outbound|80||a", "0102ff"]]],
    ["RDS", "v2", [["http_proxy", ""]]],
  ]);
});

const refusals = [
  { name: "nothing", bytes: "", expected: /first line/ },
  { name: "another file", bytes: "hello\nworld\n", expected: /first line/ },
  { name: "a cut file", bytes: text.slice(0, -10), expected: /it was cut: \d+ of \d+ bytes/ },
  { name: "a cut first line", bytes: text.slice(0, 30), expected: /first line/ },
  { name: "a longer file", bytes: `${text}x`, expected: /it was cut/ },
  { name: "an edited file", bytes: text.replace('"v1"', '"v9"'), expected: /checksum is wrong/ },
  { name: "a later format", bytes: text.replace("tulle-xds-state 1", "tulle-xds-state 2"), expected: /format is 2/ },
  {
    name: "another node's",
    bytes: encodeState(state, "sidecar~127.0.0.2~z.b~b.svc.cluster.local").toString("latin1"),
    expected: /belongs to sidecar~127\.0\.0\.2/,
  },
];

for (const { name, bytes, expected } of refusals) {
  test(`refuses ${name}, and sets it aside`, (context) => {
    const folder = mkdtempSync(path.join(tmpdir(), "tulle-state-"));
    context.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, "xds-state");
    writeFileSync(file, bytes, "latin1");
    const loaded = loadState(file, node);
    assert.ok(loaded.kind === "refused");
    assert.match(loaded.reason, expected);
    assert.ok(!existsSync(file));
    assert.equal(readFileSync(loaded.keptAs, "latin1"), bytes);
  });
}

test("every single flipped byte is noticed", () => {
  for (let index = 0; index < good.length; index += 1) {
    const flipped = Buffer.from(good);
    flipped[index]! ^= 1;
    assert.equal(typeof decodeState(flipped, node), "string", `byte ${index}`);
  }
});

test("a file is replaced in one step, readable by its owner alone", async (context) => {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-state-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "xds-state");
  assert.equal(loadState(file, node).kind, "absent");
  await writeState(file, good);
  await writeState(file, good);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(loadState(file, node).kind, "loaded");
  assert.ok(!existsSync(`${file}.new`));
});
