// The key that seals private signing keys in the store. For SQLite it is made at the first start, beside the database,
// readable by its owner only; for PostgreSQL the operator gives the same file to each process.
import { randomBytes } from "node:crypto";
import { existsSync, linkSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { makeOwnFolder } from "@tulle/identity/own";
import type { Config } from "./config.ts";

export function keyEncryptionKeyFile(config: Config): string {
  if (config.databaseUrl !== undefined && config.keyEncryptionKeyFile === undefined) {
    // One made here would seal keys that no other process can open.
    throw new Error("with PostgreSQL, --key-encryption-key-file must name the file that all processes share");
  }
  return config.keyEncryptionKeyFile ?? path.join(config.dataDir, "key-encryption-key");
}

/** For a server, which makes the file of its data directory at its first start. */
export function makeKeyEncryptionKey(config: Config): Buffer {
  const file = keyEncryptionKeyFile(config);
  if (config.keyEncryptionKeyFile === undefined) makeOnce(file);
  return loadKeyEncryptionKey(file);
}

export function loadKeyEncryptionKey(file: string): Buffer {
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new Error(`${file} can be read by others; run: chmod 600 ${file}`);
  }
  const key = Buffer.from(readFileSync(file, "utf8").trim(), "base64");
  if (key.length !== 32) throw new Error(`${file} does not hold 32 bytes as base64`);
  return key;
}

function makeOnce(file: string): void {
  if (existsSync(file)) return;
  makeOwnFolder(path.dirname(file));
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flush: true });
  try {
    // A link appears whole or not at all, and never replaces what another process has made.
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft);
  }
}
