// An authorization is one "yes" to one request: the code that carries it to the client, and the identity of everything
// that the code gives. Its states: issued (code_consumed_at empty) → redeemed (set once, by a conditional update) →
// revoked (revoked_at set; also straight from issued). The row outlives every token it gave, so that a replay is known.
import { digest, newOrderedId, newSecret } from "../crypto/secrets.ts";
import type { Reader, Transaction } from "./database.ts";

export interface Authorization {
  readonly id: string;
  readonly clientId: string;
  readonly userId: string;
  readonly grantId: string;
  readonly sessionId: string;
  readonly redirectUri: string;
  readonly redirectUriSent: boolean;
  readonly scope: readonly string[];
  readonly resources: readonly string[];
  readonly codeChallenge: string | undefined;
  readonly nonce: string | undefined;
  /** What the request wants to read in its ID tokens, beside what is there anyway. */
  readonly idTokenClaims: readonly string[];
  readonly authenticatedAtMs: number;
  readonly codeExpiresAtMs: number;
  readonly codeConsumedAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
}

interface AuthorizationRow {
  readonly id: string;
  readonly client_id: string;
  readonly user_id: string;
  readonly grant_id: string;
  readonly session_id: string;
  readonly redirect_uri: string;
  readonly redirect_uri_sent: number;
  readonly scope: string;
  readonly resources: string;
  readonly code_challenge: string | null;
  readonly nonce: string | null;
  readonly id_token_claims: string;
  readonly authenticated_at: number;
  readonly code_expires_at: number;
  readonly code_consumed_at: number | null;
  readonly revoked_at: number | null;
}

function fromRow(row: AuthorizationRow): Authorization {
  return {
    id: row.id,
    clientId: row.client_id,
    userId: row.user_id,
    grantId: row.grant_id,
    sessionId: row.session_id,
    redirectUri: row.redirect_uri,
    redirectUriSent: row.redirect_uri_sent === 1,
    scope: row.scope === "" ? [] : row.scope.split(" "),
    resources: row.resources === "[]" ? [] : (JSON.parse(row.resources) as string[]),
    codeChallenge: row.code_challenge ?? undefined,
    nonce: row.nonce ?? undefined,
    idTokenClaims: row.id_token_claims === "[]" ? [] : (JSON.parse(row.id_token_claims) as string[]),
    authenticatedAtMs: row.authenticated_at,
    codeExpiresAtMs: row.code_expires_at,
    codeConsumedAtMs: row.code_consumed_at ?? undefined,
    revokedAtMs: row.revoked_at ?? undefined,
  };
}

export type NewAuthorization = Omit<Authorization, "id" | "codeExpiresAtMs" | "codeConsumedAtMs" | "revokedAtMs"> & {
  readonly codeLifetimeMs: number;
  /** How long after the code's own end its tokens can live. */
  readonly tokensLifetimeMs: number;
};

/** Answers the code, which is not kept. */
export async function issueCode(transaction: Transaction, authorization: NewAuthorization): Promise<string> {
  const code = newSecret();
  const now = transaction.nowMs;
  const codeExpiresAtMs = now + authorization.codeLifetimeMs;
  await transaction.run(
    `INSERT INTO authorizations (id, id_token_claims, code_digest, client_id, user_id, grant_id, session_id, redirect_uri,
      redirect_uri_sent, scope, resources, code_challenge, nonce, authenticated_at, created_at,
      code_expires_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      newOrderedId(now),
      JSON.stringify(authorization.idTokenClaims),
      digest(code),
      authorization.clientId,
      authorization.userId,
      authorization.grantId,
      authorization.sessionId,
      authorization.redirectUri,
      authorization.redirectUriSent ? 1 : 0,
      authorization.scope.join(" "),
      JSON.stringify(authorization.resources),
      authorization.codeChallenge ?? null,
      authorization.nonce ?? null,
      authorization.authenticatedAtMs,
      now,
      codeExpiresAtMs,
      codeExpiresAtMs + authorization.tokensLifetimeMs,
    ],
  );
  return code;
}

export async function findByCode(reader: Reader, code: string): Promise<Authorization | undefined> {
  const row = await reader.get<AuthorizationRow>("SELECT * FROM authorizations WHERE code_digest = ?", [digest(code)]);
  return row === undefined ? undefined : fromRow(row);
}

export async function findAuthorization(reader: Reader, id: string): Promise<Authorization | undefined> {
  const row = await reader.get<AuthorizationRow>("SELECT * FROM authorizations WHERE id = ?", [id]);
  return row === undefined ? undefined : fromRow(row);
}

/** False when another request was faster. The condition in the statement is what makes a code work only once. */
export async function consumeCode(transaction: Transaction, id: string): Promise<boolean> {
  const changed = await transaction.run(
    "UPDATE authorizations SET code_consumed_at = ? WHERE id = ? AND code_consumed_at IS NULL AND revoked_at IS NULL",
    [transaction.nowMs, id],
  );
  return changed === 1;
}

export async function revokeAuthorization(transaction: Transaction, id: string, because: string): Promise<void> {
  await transaction.run(
    "UPDATE authorizations SET revoked_at = ?, revoked_because = ? WHERE id = ? AND revoked_at IS NULL",
    [transaction.nowMs, because, id],
  );
}

/**
 * What a client is given for as long as somebody is signed in, and codes that would tell it of a session that is over.
 */
export async function revokeWithSession(transaction: Transaction, sessionId: string, userId: string): Promise<void> {
  await transaction.run(
    `UPDATE authorizations SET revoked_at = ?, revoked_because = 'session ended'
     WHERE user_id = ? AND session_id = ? AND revoked_at IS NULL AND
       (client_id IN (SELECT id FROM clients WHERE refresh_ends_with_session = 1) OR
        (code_consumed_at IS NULL AND client_id IN (SELECT id FROM clients WHERE backchannel_logout_uri IS NOT NULL)))`,
    [transaction.nowMs, userId, sessionId],
  );
}

/** Keeps the row for as long as a new token of it can live. */
export async function extendAuthorization(transaction: Transaction, id: string, expiresAtMs: number): Promise<void> {
  await transaction.run("UPDATE authorizations SET expires_at = ? WHERE id = ? AND expires_at < ?", [
    expiresAtMs,
    id,
    expiresAtMs,
  ]);
}
