// Deletes what has expired, a few rows at a time and as part of ordinary work, so that no table grows for ever and no
// request waits for a big clean-up.
import type { Database } from "./database.ts";

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

/** Deletes at most `rowsPerTable` expired rows of each table; answers how many went. */
export async function purgeExpired(database: Database, rowsPerTable: number): Promise<number> {
  let removed = 0;
  for (const [table, key] of tables) {
    removed += await database.transaction((transaction) =>
      transaction.run(
        `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE expires_at <= ? LIMIT ?)`,
        [transaction.nowMs, rowsPerTable],
      ),
    );
  }
  return removed;
}
