// Migrations: forward only, once, whoever comes first; and a schema from the future is refused.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { openDatabase } from "./open.ts";

test("SQLite: several openings at the same time make one schema, in a file for its owner only", async (t) => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const opened = await Promise.all([1, 2, 3].map(() => openDatabase({ dataDir, databaseUrl: undefined })));
  const [database] = opened;
  const rows = await database!.read((reader) => reader.all("SELECT version FROM schema_versions"));
  assert.deepEqual(
    rows.map((row) => row["version"]),
    [1],
  );
  assert.equal(statSync(path.join(dataDir, "store.sqlite")).mode & 0o777, 0o600);
  await database!.transaction((transaction) =>
    transaction.run("INSERT INTO schema_versions (version, name, applied_at) VALUES (?, ?, ?)", [99, "later", 0]),
  );
  for (const each of opened) await each.close();
  await assert.rejects(openDatabase({ dataDir, databaseUrl: undefined }), /schema version 99 and this program knows 1/);
});
