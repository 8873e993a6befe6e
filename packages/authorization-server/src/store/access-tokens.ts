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

/**
 * Whether a token that has not expired is still in force: not revoked itself, of a client in use, and of an
 * authorization that is there and not revoked. A deleted client or user takes its authorizations along.
 */
export async function isTokenInForce(
  reader: Reader,
  token: Pick<StoredAccessToken, "id" | "authorizationId" | "clientId">,
): Promise<boolean> {
  const row = await reader.get<{ revoked: number; live: number; clients: number }>(
    `SELECT (SELECT count(*) FROM revoked_tokens WHERE id = ?) AS revoked,
     (SELECT count(*) FROM authorizations WHERE id = ? AND revoked_at IS NULL) AS live,
     (SELECT count(*) FROM clients WHERE id = ? AND disabled_at IS NULL) AS clients`,
    [token.id, token.authorizationId ?? "", token.clientId],
  );
  if (row === undefined || row.revoked > 0 || row.clients === 0) return false;
  return token.authorizationId === undefined || row.live > 0;
}
