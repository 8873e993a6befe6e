// Signing keys in the store, private halves sealed, and the rule by which they follow one another. States of a key:
// next (published, not signing) → active (activated_at set) → retired (retired_at set; still published until every
// token that it signed has expired) → removed.
import { generateKeyPair } from "node:crypto";
import { promisify } from "node:util";
import type { Config } from "../config/config.ts";
import { newId } from "../crypto/secrets.ts";
import { seal } from "../crypto/sealing.ts";
import type { Reader, Transaction } from "../store/database.ts";
import type { SigningAlgorithm } from "./jwt.ts";

export interface KeyPolicy {
  readonly algorithm: SigningAlgorithm;
  readonly rotationMs: number;
  /** How long a key is published before it signs: at least two refreshes of the slowest reader of the key set. */
  readonly publishAheadMs: number;
  /** How long a retired key stays published: the longest life of what it signed, and clock skew. */
  readonly keepRetiredMs: number;
}

const clockSkewMs = 60_000;

export function keyPolicy(config: Config): KeyPolicy {
  return {
    algorithm: config.signingAlgorithm,
    rotationMs: config.keyRotationMs,
    publishAheadMs: config.keyPublishAheadMs,
    keepRetiredMs: Math.max(config.lifetimes.accessTokenMs, config.lifetimes.idTokenMs) + clockSkewMs,
  };
}

export interface StoredKey {
  readonly id: string;
  readonly algorithm: SigningAlgorithm;
  readonly publicJwk: string;
  readonly privateSealed: string;
  readonly createdAtMs: number;
  readonly activatedAtMs: number | undefined;
  readonly retiredAtMs: number | undefined;
  readonly removedAfterMs: number | undefined;
}

interface KeyRow {
  readonly id: string;
  readonly algorithm: SigningAlgorithm;
  readonly public_jwk: string;
  readonly private_sealed: string;
  readonly created_at: number;
  readonly activated_at: number | null;
  readonly retired_at: number | null;
  readonly removed_after: number | null;
}

export async function listKeys(reader: Reader): Promise<readonly StoredKey[]> {
  const rows = await reader.all<KeyRow>("SELECT * FROM signing_keys ORDER BY created_at, id");
  return rows.map((row) => ({
    id: row.id,
    algorithm: row.algorithm,
    publicJwk: row.public_jwk,
    privateSealed: row.private_sealed,
    createdAtMs: row.created_at,
    activatedAtMs: row.activated_at ?? undefined,
    retiredAtMs: row.retired_at ?? undefined,
    removedAfterMs: row.removed_after ?? undefined,
  }));
}

export function sealingContext(keyId: string): string {
  return `tulle signing key ${keyId}`;
}

export interface NewKey {
  readonly id: string;
  readonly algorithm: SigningAlgorithm;
  readonly publicJwk: string;
  readonly privateSealed: string;
}

/** Makes a key outside of any transaction, since generating an RSA key takes a good part of a second. */
export async function generateSigningKey(algorithm: SigningAlgorithm, encryptionKey: Buffer): Promise<NewKey> {
  const id = newId();
  const { publicKey, privateKey } =
    algorithm === "ES256"
      ? await promisify(generateKeyPair)("ec", { namedCurve: "P-256" })
      : await promisify(generateKeyPair)("rsa", { modulusLength: 2048 });
  const jwk = { ...publicKey.export({ format: "jwk" }), kid: id, alg: algorithm, use: "sig" };
  const pem = privateKey.export({ format: "pem", type: "pkcs8" });
  return {
    id,
    algorithm,
    publicJwk: JSON.stringify(jwk),
    privateSealed: seal(encryptionKey, pem, sealingContext(id)),
  };
}

export interface RotationRequest {
  /** Two fresh keys, in case one or both are needed; what is not stored is forgotten. */
  readonly spares: readonly [NewKey, NewKey];
  /** An operator's wish: make the next key active now. */
  readonly force: boolean;
}

/** True when `advanceKeys` has nothing to do, so that no spare keys need to be made. */
export function keysAreSettled(keys: readonly StoredKey[], policy: KeyPolicy, nowMs: number): boolean {
  const active = keys.find((key) => key.activatedAtMs !== undefined && key.retiredAtMs === undefined);
  const next = keys.find((key) => key.activatedAtMs === undefined);
  if (active === undefined || next === undefined || next.algorithm !== policy.algorithm) return false;
  if (keys.some((key) => key.removedAfterMs !== undefined && key.removedAfterMs < nowMs)) return false;
  return !isDue(active, next, policy, nowMs);
}

function isDue(active: StoredKey, next: StoredKey, policy: KeyPolicy, nowMs: number): boolean {
  const wanted = nowMs - (active.activatedAtMs ?? 0) >= policy.rotationMs || active.algorithm !== policy.algorithm;
  return wanted && nowMs - next.createdAtMs >= policy.publishAheadMs;
}

/** One step of the life of the keys, under a lock: first keys, promotion of the next one, removal of old ones. */
export async function advanceKeys(
  transaction: Transaction,
  policy: KeyPolicy,
  request: RotationRequest,
): Promise<void> {
  await transaction.lock("signing keys");
  const now = transaction.nowMs;
  const keys = await listKeys(transaction);
  const spares = [...request.spares];
  const active = keys.find((key) => key.activatedAtMs !== undefined && key.retiredAtMs === undefined);
  let next = keys.find((key) => key.activatedAtMs === undefined && key.algorithm === policy.algorithm);
  await transaction.run("DELETE FROM signing_keys WHERE activated_at IS NULL AND algorithm <> ?", [policy.algorithm]);
  await transaction.run("DELETE FROM signing_keys WHERE removed_after < ?", [now]);
  if (active === undefined) {
    if (next === undefined) await insertKey(transaction, spares.pop()!, now);
    else await transaction.run("UPDATE signing_keys SET activated_at = ? WHERE id = ?", [now, next.id]);
    next = undefined;
  } else if (next !== undefined && (request.force || isDue(active, next, policy, now))) {
    await transaction.run("UPDATE signing_keys SET retired_at = ?, removed_after = ? WHERE id = ?", [
      now,
      now + policy.keepRetiredMs,
      active.id,
    ]);
    await transaction.run("UPDATE signing_keys SET activated_at = ? WHERE id = ?", [now, next.id]);
    next = undefined;
  }
  if (next === undefined) await insertKey(transaction, spares.pop()!, undefined);
}

async function insertKey(transaction: Transaction, key: NewKey, activatedAtMs: number | undefined): Promise<void> {
  await transaction.run(
    `INSERT INTO signing_keys (id, algorithm, public_jwk, private_sealed, created_at, activated_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
    [key.id, key.algorithm, key.publicJwk, key.privateSealed, transaction.nowMs, activatedAtMs ?? null],
  );
}
