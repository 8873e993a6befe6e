// Refresh tokens rotate: each works once and gives a successor. States: fresh (used_at empty) → rotated (used_at and
// the sealed successor set). Within the grace time a rotated token gives its successor again, which only the holder of
// the old token can unseal: the key is derived from the old token, and the store has its digest alone.
import { digest, newSecret } from "../crypto/secrets.ts";
import { keyFromSecret, seal, unseal } from "../crypto/sealing.ts";
import type { Reader, Transaction } from "./database.ts";

const sealingPurpose = "tulle refresh token successor";

export interface RefreshToken {
  readonly tokenDigest: string;
  readonly authorizationId: string;
  readonly expiresAtMs: number;
  readonly usedAtMs: number | undefined;
  readonly successorDigest: string | undefined;
  readonly successorSealed: string | undefined;
}

interface RefreshTokenRow {
  readonly token_digest: string;
  readonly authorization_id: string;
  readonly expires_at: number;
  readonly used_at: number | null;
  readonly successor_digest: string | null;
  readonly successor_sealed: string | null;
}

function fromRow(row: RefreshTokenRow): RefreshToken {
  return {
    tokenDigest: row.token_digest,
    authorizationId: row.authorization_id,
    expiresAtMs: row.expires_at,
    usedAtMs: row.used_at ?? undefined,
    successorDigest: row.successor_digest ?? undefined,
    successorSealed: row.successor_sealed ?? undefined,
  };
}

export async function findRefreshToken(reader: Reader, token: string): Promise<RefreshToken | undefined> {
  return findRefreshTokenByDigest(reader, digest(token));
}

export async function findRefreshTokenByDigest(reader: Reader, tokenDigest: string): Promise<RefreshToken | undefined> {
  const row = await reader.get<RefreshTokenRow>("SELECT * FROM refresh_tokens WHERE token_digest = ?", [tokenDigest]);
  return row === undefined ? undefined : fromRow(row);
}

export async function issueRefreshToken(
  transaction: Transaction,
  authorizationId: string,
  lifetimeMs: number,
): Promise<string> {
  const token = newSecret();
  await transaction.run(
    "INSERT INTO refresh_tokens (token_digest, authorization_id, issued_at, expires_at) VALUES (?, ?, ?, ?)",
    [digest(token), authorizationId, transaction.nowMs, transaction.nowMs + lifetimeMs],
  );
  return token;
}

/** Replaces a fresh token; undefined when another request has rotated it meanwhile. */
export async function rotateRefreshToken(
  transaction: Transaction,
  token: string,
  authorizationId: string,
  lifetimeMs: number,
): Promise<string | undefined> {
  const successor = newSecret();
  const tokenDigest = digest(token);
  const sealed = seal(keyFromSecret(token, sealingPurpose), successor, tokenDigest);
  const changed = await transaction.run(
    `UPDATE refresh_tokens SET used_at = ?, successor_digest = ?, successor_sealed = ?
     WHERE token_digest = ? AND used_at IS NULL`,
    [transaction.nowMs, digest(successor), sealed, tokenDigest],
  );
  if (changed === 0) return undefined;
  await transaction.run(
    "INSERT INTO refresh_tokens (token_digest, authorization_id, issued_at, expires_at) VALUES (?, ?, ?, ?)",
    [digest(successor), authorizationId, transaction.nowMs, transaction.nowMs + lifetimeMs],
  );
  return successor;
}

/** The successor that `token` gave before; undefined when it was not this token that sealed it. */
export function successorOf(token: string, row: RefreshToken): string | undefined {
  if (row.successorSealed === undefined) return undefined;
  return unseal(keyFromSecret(token, sealingPurpose), row.successorSealed, row.tokenDigest);
}
