// Opens the configured database and brings its schema up to date; the server and the command line share it.
import path from "node:path";
import { makeOwnFolder } from "@tulle/identity/own";
import type { Config } from "../config/config.ts";
import type { Database } from "./database.ts";
import { migrate } from "./migrations.ts";
import { openSqlite } from "./sqlite.ts";

export async function openDatabase(
  config: Pick<Config, "databaseUrl" | "dataDir">,
  options: { readonly nowMs?: () => number; readonly onConnectionLost?: (error: Error) => void } = {},
): Promise<Database> {
  let database: Database;
  if (config.databaseUrl === undefined) {
    makeOwnFolder(config.dataDir);
    database = openSqlite({ path: path.join(config.dataDir, "store.sqlite"), ...options });
  } else {
    // Loaded only where it is used: the driver costs an installation on SQLite several megabytes.
    const { openPostgresql } = await import("./postgresql.ts");
    database = openPostgresql({ url: config.databaseUrl, ...options });
  }
  try {
    await migrate(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}
