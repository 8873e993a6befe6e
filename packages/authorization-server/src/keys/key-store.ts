// Signing keys in the store, private halves sealed. States of a key, of which each algorithm has its own succession:
// next (published, not signing) → active (activated_at set) → published (retired_at set: every token that it signed can
// still be checked) → hints (no longer published: what it signed is still known here, while a session that it told of
// may live) → removed. A key that is retired can sign no more: its private half is erased.
import { generateKeyPair } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { newId } from "../crypto/secrets.ts";
import { seal } from "../crypto/sealing.ts";
import type { Reader, Transaction } from "../store/database.ts";
import type { SigningAlgorithm } from "./jwt.ts";

/**
 * How long a key is needed after it has signed for the last time. They lie with the key: every process that signs with
 * it lengthens them to what it needs itself, so that whoever retires the key needs no settings.
 */
export interface KeyLives {
  /** Until every access and ID token has expired for its reader. */
  readonly tokenLifeMs: number;
  /** Until every session that an ID token told of has ended. */
  readonly hintLifeMs: number;
}

export interface StoredKey extends KeyLives {
  readonly id: string;
  readonly algorithm: SigningAlgorithm;
  readonly publicJwk: string;
  /** Empty once it is retired. */
  readonly privateSealed: string;
  readonly createdAtMs: number;
  readonly activatedAtMs: number | undefined;
  readonly retiredAtMs: number | undefined;
}

export type KeyState = "next" | "active" | "published" | "hints" | "over";

export function keyState(key: StoredKey, nowMs: number): KeyState {
  if (key.retiredAtMs === undefined) return key.activatedAtMs === undefined ? "next" : "active";
  if (nowMs <= key.retiredAtMs + key.tokenLifeMs) return "published";
  return nowMs <= key.retiredAtMs + key.hintLifeMs ? "hints" : "over";
}

interface KeyRow {
  readonly id: string;
  readonly algorithm: SigningAlgorithm;
  readonly public_jwk: string;
  readonly private_sealed: string;
  readonly created_at: number;
  readonly activated_at: number | null;
  readonly retired_at: number | null;
  readonly token_life: number;
  readonly hint_life: number;
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
    tokenLifeMs: row.token_life,
    hintLifeMs: row.hint_life,
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

export interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export type MakeKeyPair = (algorithm: SigningAlgorithm) => Promise<KeyPair>;

export const makeKeyPair: MakeKeyPair = (algorithm) =>
  algorithm === "ES256"
    ? promisify(generateKeyPair)("ec", { namedCurve: "P-256" })
    : promisify(generateKeyPair)("rsa", { modulusLength: 2048 });

export function sealedKey(algorithm: SigningAlgorithm, pair: KeyPair, encryptionKey: Buffer): NewKey {
  const id = newId();
  const jwk = { ...pair.publicKey.export({ format: "jwk" }), kid: id, alg: algorithm, use: "sig" };
  const pem = pair.privateKey.export({ format: "pem", type: "pkcs8" });
  return {
    id,
    algorithm,
    publicJwk: JSON.stringify(jwk),
    privateSealed: seal(encryptionKey, pem, sealingContext(id)),
  };
}

export async function insertKey(
  transaction: Transaction,
  key: NewKey,
  life: KeyLives & { readonly active: boolean },
): Promise<void> {
  const now = transaction.nowMs;
  await transaction.run(
    `INSERT INTO signing_keys (id, algorithm, public_jwk, private_sealed, created_at, activated_at, token_life, hint_life)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      key.id,
      key.algorithm,
      key.publicJwk,
      key.privateSealed,
      now,
      life.active ? now : null,
      life.tokenLifeMs,
      life.hintLifeMs,
    ],
  );
}

export async function activateKey(transaction: Transaction, id: string): Promise<void> {
  await transaction.run("UPDATE signing_keys SET activated_at = ? WHERE id = ?", [transaction.nowMs, id]);
}

export async function retireKey(transaction: Transaction, id: string): Promise<void> {
  await transaction.run("UPDATE signing_keys SET retired_at = ?, private_sealed = '' WHERE id = ?", [
    transaction.nowMs,
    id,
  ]);
}

export async function lengthenKeyLives(transaction: Transaction, id: string, lives: KeyLives): Promise<void> {
  await transaction.run("UPDATE signing_keys SET token_life = ?, hint_life = ? WHERE id = ?", [
    lives.tokenLifeMs,
    lives.hintLifeMs,
    id,
  ]);
}

export async function removeKey(transaction: Transaction, id: string): Promise<void> {
  await transaction.run("DELETE FROM signing_keys WHERE id = ?", [id]);
}
