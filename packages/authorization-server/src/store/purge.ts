// Deletes what has expired, a few rows at a time and as part of ordinary work, so that no table grows for ever and no
// request waits for a big clean-up.
import { setImmediate } from "node:timers/promises";
import type { Database } from "./database.ts";
import { trimThrottles } from "./throttles.ts";

const stepRows = 200;

const tables: ReadonlyArray<readonly [table: string, key: string]> = [
  ["refresh_tokens", "token_digest"],
  ["access_tokens", "token_digest"],
  ["authorizations", "id"],
  ["revoked_tokens", "id"],
  ["interactions", "id_digest"],
  ["sessions", "id"],
  ["grants", "id"],
  ["throttles", "id"],
  ["audit_events", "id"],
];

/**
 * Goes on until nothing is due, and nothing beyond its limit; requests come first between two steps. `isIdle`: then
 * freed space goes back to the disk.
 */
export async function purgeAll(database: Database, { isIdle }: { readonly isIdle: boolean }): Promise<void> {
  while ((await purgeExpired(database, stepRows)) > 0) await setImmediate();
  while (await trimThrottles(database)) await setImmediate();
  if (isIdle) await database.compact();
}

/**
 * Deletes at most `rowsPerTable` expired rows of each table; answers how many went. Nothing to delete costs no commit.
 */
export async function purgeExpired(database: Database, rowsPerTable: number): Promise<number> {
  const due = await database.read(async (reader) => {
    const found: (readonly [string, string])[] = [];
    for (const [table, key] of tables) {
      const row = await reader.get(`SELECT ${key} FROM ${table} WHERE expires_at <= ? LIMIT 1`, [reader.nowMs]);
      if (row !== undefined) found.push([table, key]);
    }
    return found;
  });
  if (due.length === 0) return 0;
  return database.transaction(async (transaction) => {
    let removed = 0;
    for (const [table, key] of due) {
      removed += await transaction.run(
        `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE expires_at <= ? LIMIT ?)`,
        [transaction.nowMs, rowsPerTable],
      );
    }
    return removed;
  });
}
