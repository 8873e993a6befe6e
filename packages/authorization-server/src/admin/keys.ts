// Administration of signing keys. All that rotating needs lies in the store: the algorithms are those of its keys, and
// each new key takes over the lives that running servers have given to the one before it.
import { recordAdministration } from "../audit/audit-log.ts";
import type { Config } from "../config/config.ts";
import { keyEncryptionKeyFile, loadKeyEncryptionKey } from "../config/key-encryption-key.ts";
import { KeyRing } from "../keys/key-ring.ts";
import type { KeyState, StoredKey } from "../keys/key-store.ts";
import { keyState, listKeys, makeKeyPair } from "../keys/key-store.ts";
import { advanceKeys, keyPolicy, stepsToRotate } from "../keys/succession.ts";
import type { Database } from "../store/database.ts";
import type { AdminResult } from "./result.ts";

export interface KeyListing {
  readonly id: string;
  readonly algorithm: string;
  readonly state: KeyState;
  readonly createdAtMs: number;
  readonly activatedAtMs: number | undefined;
  readonly publishedUntilMs: number | undefined;
  readonly removedAfterMs: number | undefined;
}

function listing(key: StoredKey, nowMs: number): KeyListing {
  const { id, algorithm, createdAtMs, activatedAtMs, retiredAtMs } = key;
  const ends =
    retiredAtMs === undefined
      ? { publishedUntilMs: undefined, removedAfterMs: undefined }
      : { publishedUntilMs: retiredAtMs + key.tokenLifeMs, removedAfterMs: retiredAtMs + key.hintLifeMs };
  return { id, algorithm, state: keyState(key, nowMs), createdAtMs, activatedAtMs, ...ends };
}

export async function keyList(database: Database): Promise<readonly KeyListing[]> {
  return database.read(async (reader) => (await listKeys(reader)).map((key) => listing(key, reader.nowMs)));
}

/**
 * Makes the next key of each algorithm sign now, although it may have been published for less than `key-publish-ahead`.
 * Running servers follow within half a minute.
 */
export async function rotateKeys(database: Database, config: Config): Promise<AdminResult<readonly KeyListing[]>> {
  if ((await keyList(database)).length === 0)
    return { problems: ["this store has no signing keys yet; a server makes them at its first start"] };
  const encryptionKey = loadKeyEncryptionKey(keyEncryptionKeyFile(config));
  // Reading the keys proves that this is the key encryption key of the servers.
  await new KeyRing(database, { policy: keyPolicy(config), encryptionKey }).load();
  await advanceKeys(database, stepsToRotate, { encryptionKey, makeKeyPair });
  await database.transaction((transaction) =>
    recordAdministration(transaction, { event: "signing key rotated by hand" }),
  );
  return { value: await keyList(database) };
}
