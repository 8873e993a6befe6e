// What a store knows of the server that it belongs to, for the command line, which has no other way to ask.
import type { Logger } from "@tulle/telemetry";
import type { Database } from "./database.ts";

/** Processes that share a store share an issuer: tokens name it, and registered redirect URIs depend on it. */
export async function rememberIssuer(database: Database, issuer: string, log: Logger): Promise<void> {
  const before = await readIssuer(database);
  if (before === issuer) return;
  if (before !== undefined) log.warning("this store served another issuer before", { before, now: issuer });
  await writeFact(database, "issuer", issuer);
}

export async function writeFact(database: Database, name: string, value: string): Promise<void> {
  const sql = "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
  await database.transaction((transaction) => transaction.run(sql, [name, value]));
}

/** The issuer of the server that last opened the store; undefined for a store that no server has opened yet. */
export async function readIssuer(database: Database): Promise<string | undefined> {
  const row = await database.read((reader) =>
    reader.get<{ value: string }>("SELECT value FROM facts WHERE name = ?", ["issuer"]),
  );
  return row?.value;
}
