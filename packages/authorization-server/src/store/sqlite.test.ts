// The embedded database: shared commits, rollbacks that touch only their own transaction, and waiting for others.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { TestContext } from "node:test";
import type { Database } from "./database.ts";
import { DatabaseUnavailable } from "./database.ts";
import { openSqlite } from "./sqlite.ts";

async function table(t: TestContext, busyTimeoutMs = 5000): Promise<{ database: Database; file: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  const file = path.join(folder, "x.sqlite");
  const database = openSqlite({ path: file, busyTimeoutMs });
  t.after(async () => {
    await database.close();
    rmSync(folder, { recursive: true });
  });
  await database.transaction((transaction) => database.script(transaction, "CREATE TABLE t (a TEXT PRIMARY KEY)"));
  return { database, file };
}

const insert = "INSERT INTO t (a) VALUES (?)";

test("transactions of one turn commit together, and a throw undoes only its own", async (t) => {
  const { database } = await table(t);
  const results = await Promise.allSettled(
    ["a", "b", "c"].map((value) =>
      database.transaction(async (transaction) => {
        await transaction.run(insert, [value]);
        if (value === "b") throw new Error("no");
        return value;
      }),
    ),
  );
  assert.deepEqual(
    results.map((result) => result.status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  const rows = await database.read((reader) => reader.all("SELECT a FROM t ORDER BY a"));
  assert.deepEqual(
    rows.map((row) => row["a"]),
    ["a", "c"],
  );
  await assert.rejects(
    database.transaction(async (transaction) => {
      await transaction.run(insert, ["d"]);
      throw new Error("alone");
    }),
    /alone/,
  );
  assert.equal(await database.read((reader) => reader.get("SELECT a FROM t WHERE a = ?", ["d"])), undefined);
});

test("a read sees nothing of a transaction that has not committed", async (t) => {
  const { database } = await table(t);
  await database.transaction(async (transaction) => {
    await transaction.run(insert, ["a"]);
    assert.equal(await database.read((reader) => reader.get("SELECT a FROM t")), undefined);
  });
  assert.deepEqual({ ...(await database.read((reader) => reader.get("SELECT a FROM t"))) }, { a: "a" });
});

test("a writer waits for another process, and gives up in a way that can be told", async (t) => {
  const { database, file } = await table(t, 50);
  const other = new DatabaseSync(file);
  other.exec("BEGIN IMMEDIATE");
  await assert.rejects(
    database.transaction((transaction) => transaction.run(insert, ["a"])),
    DatabaseUnavailable,
  );
  other.exec("COMMIT");
  other.close();
  assert.equal(await database.transaction((transaction) => transaction.run(insert, ["a"])), 1);
});
