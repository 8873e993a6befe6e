// Access tokens that the store must know: opaque ones, by digest, and the ids of revoked JWTs until they expire.
import { digest, newSecret } from "../crypto/secrets.ts";
import type { Reader, Transaction } from "./database.ts";

export interface StoredAccessToken {
  readonly id: string;
  readonly authorizationId: string | undefined;
  readonly clientId: string;
  readonly subject: string;
  readonly scope: readonly string[];
  readonly audience: readonly string[];
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
}

export async function issueOpaqueToken(transaction: Transaction, token: StoredAccessToken): Promise<string> {
  const secret = newSecret();
  await transaction.run(
    `INSERT INTO access_tokens (token_digest, id, authorization_id, client_id, subject, scope, audience, issued_at,
      expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      digest(secret),
      token.id,
      token.authorizationId ?? null,
      token.clientId,
      token.subject,
      token.scope.join(" "),
      JSON.stringify(token.audience),
      token.issuedAtMs,
      token.expiresAtMs,
    ],
  );
  return secret;
}

export async function findOpaqueToken(reader: Reader, token: string): Promise<StoredAccessToken | undefined> {
  const row = await reader.get<{
    id: string;
    authorization_id: string | null;
    client_id: string;
    subject: string;
    scope: string;
    audience: string;
    issued_at: number;
    expires_at: number;
  }>("SELECT * FROM access_tokens WHERE token_digest = ? AND expires_at > ?", [digest(token), reader.nowMs]);
  if (row === undefined) return undefined;
  return {
    id: row.id,
    authorizationId: row.authorization_id ?? undefined,
    clientId: row.client_id,
    subject: row.subject,
    scope: row.scope === "" ? [] : row.scope.split(" "),
    audience: JSON.parse(row.audience) as string[],
    issuedAtMs: row.issued_at,
    expiresAtMs: row.expires_at,
  };
}

export async function revokeTokenId(transaction: Transaction, id: string, expiresAtMs: number): Promise<void> {
  await transaction.run("INSERT INTO revoked_tokens (id, expires_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", [
    id,
    expiresAtMs,
  ]);
}

/** True when the token itself was revoked, or the authorization that it came from. */
export async function isTokenRevoked(
  reader: Reader,
  id: string,
  authorizationId: string | undefined,
): Promise<boolean> {
  const row = await reader.get(
    `SELECT 1 AS found FROM revoked_tokens WHERE id = ?
     UNION ALL SELECT 1 FROM authorizations WHERE id = ? AND revoked_at IS NOT NULL`,
    [id, authorizationId ?? ""],
  );
  return row !== undefined;
}
