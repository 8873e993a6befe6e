// Migrations: forward only, once, whoever comes first; and a schema from the future is refused.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { decodeProtectedHeader } from "jose";
import { KeyRing } from "../keys/key-ring.ts";
import type { NewKey } from "../keys/key-store.ts";
import { keyState, listKeys, makeKeyPair, sealedKey } from "../keys/key-store.ts";
import { repeatedKeyPair } from "../testing/test-server.ts";
import { migrations } from "./migrations.ts";
import { openDatabase } from "./open.ts";

test("SQLite: several openings at the same time make one schema, in a file for its owner only", async (t) => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const opened = await Promise.all([1, 2, 3].map(() => openDatabase({ dataDir, databaseUrl: undefined })));
  const [database] = opened;
  const rows = await database!.read((reader) => reader.all("SELECT version FROM schema_versions"));
  assert.deepEqual(
    rows.map((row) => row["version"]),
    migrations.map(({ version }) => version),
  );
  assert.equal(statSync(path.join(dataDir, "store.sqlite")).mode & 0o777, 0o600);
  await database!.transaction((transaction) =>
    transaction.run("INSERT INTO schema_versions (version, name, applied_at) VALUES (?, ?, ?)", [99, "later", 0]),
  );
  for (const each of opened) await each.close();
  await assert.rejects(
    openDatabase({ dataDir, databaseUrl: undefined }),
    /schema version 99 and this program knows \d+/,
  );
});

test("keys of a store of the first schema go on: the active one signs, a retired one is known for hints", async (t) => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const now = 1_800_000_000_000;
  const encryptionKey = randomBytes(32);
  const keys: NewKey[] = [];
  for (let count = 0; count < 3; count += 1) keys.push(sealedKey("ES256", await makeKeyPair("ES256"), encryptionKey));
  const [retired, active, next] = keys as [NewKey, NewKey, NewKey];
  const old = new DatabaseSync(path.join(dataDir, "store.sqlite"));
  old.exec(
    `CREATE TABLE schema_versions (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`,
  );
  old.exec(migrations[0]!.sql);
  old.exec("INSERT INTO schema_versions VALUES (1, 'first schema', 0)");
  const insert = old.prepare("INSERT INTO signing_keys VALUES (?, 'ES256', ?, ?, ?, ?, ?, ?)");
  insert.run(retired.id, retired.publicJwk, retired.privateSealed, now, now, now + 1000, now + 361_000);
  insert.run(active.id, active.publicJwk, active.privateSealed, now + 500, now + 1000, null, null);
  insert.run(next.id, next.publicJwk, next.privateSealed, now + 1000, null, null, null);
  old.close();
  let nowMs = now + 2000;
  const database = await openDatabase({ dataDir, databaseUrl: undefined }, { nowMs: () => nowMs });
  t.after(() => database.close());
  const policy = {
    rotationMs: 30 * 86_400_000,
    publishAheadMs: 86_400_000,
    tokenLifeMs: 360_000,
    hintLifeMs: 7 * 86_400_000,
  };
  const ring = new KeyRing(database, { policy, encryptionKey, makeKeyPair: repeatedKeyPair });
  await ring.refresh();
  const states = async (): Promise<string[]> => {
    const stored = await database.read((reader) => listKeys(reader));
    return stored.map((key) => `${key.algorithm} ${keyState(key, nowMs)}`).sort();
  };
  assert.deepEqual(await states(), ["ES256 active", "ES256 next", "ES256 published", "RS256 next"]);
  assert.equal(decodeProtectedHeader(ring.sign("RS256", "JWT", {})).kid, active.id);
  nowMs += 6 * 86_400_000;
  await ring.refresh();
  assert.deepEqual(await states(), ["ES256 active", "ES256 hints", "ES256 next", "RS256 active", "RS256 next"]);
});
