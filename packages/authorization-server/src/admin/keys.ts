// Administration of signing keys.
import { recordAdministration } from "../audit.ts";
import type { Config } from "../config/config.ts";
import { loadKeyEncryptionKey } from "../config/key-encryption-key.ts";
import { KeyRing } from "../keys/key-ring.ts";
import type { StoredKey } from "../keys/key-store.ts";
import { keyPolicy, listKeys } from "../keys/key-store.ts";
import type { Database } from "../store/database.ts";

export interface KeyListing {
  readonly id: string;
  readonly algorithm: string;
  readonly state: "next" | "active" | "retired";
  readonly createdAtMs: number;
  readonly activatedAtMs: number | undefined;
  readonly removedAfterMs: number | undefined;
}

function listing(key: StoredKey): KeyListing {
  const state = key.retiredAtMs !== undefined ? "retired" : key.activatedAtMs === undefined ? "next" : "active";
  const { id, algorithm, createdAtMs, activatedAtMs, removedAfterMs } = key;
  return { id, algorithm, state, createdAtMs, activatedAtMs, removedAfterMs };
}

export async function keyList(database: Database): Promise<readonly KeyListing[]> {
  return (await database.read((reader) => listKeys(reader))).map(listing);
}

/**
 * Makes the next key sign now, although it may have been published for less than `key-publish-ahead`. Running servers
 * follow within half a minute.
 */
export async function rotateKeys(database: Database, config: Config): Promise<readonly KeyListing[]> {
  const ring = new KeyRing(database, keyPolicy(config), loadKeyEncryptionKey(config));
  await ring.refresh();
  await ring.refresh({ force: true });
  await database.transaction((transaction) =>
    recordAdministration(transaction, { event: "signing key rotated by hand" }),
  );
  return keyList(database);
}
