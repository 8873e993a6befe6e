// Access tokens: JWTs by RFC 9068, or opaque ones for clients registered so. A JWT's id names the authorization that it
// came from, so that revocation is known to introspection without a row for each token.
import type { Config } from "../config/config.ts";
import type { TokenForm } from "../config/token-form.ts";
import { newId } from "../crypto/secrets.ts";
import type { ServerContext } from "../server-context.ts";
import type { StoredAccessToken } from "../store/access-tokens.ts";
import { issueOpaqueToken } from "../store/access-tokens.ts";
import type { Client } from "../store/clients.ts";
import type { Transaction } from "../store/database.ts";
import type { UserClaims } from "../store/users.ts";

export interface AccessTokenContent {
  readonly client: Client;
  /** The user, or the client itself where it acts for itself (RFC 9068 §2.2). */
  readonly subject: string;
  readonly scope: readonly string[];
  readonly audience: readonly string[];
  readonly authorizationId: string | undefined;
  readonly authenticatedAtMs: number | undefined;
  /** What the resource server gets to know of the user. */
  readonly userClaims: UserClaims;
}

/** A token whose row, if it has one, lies in the transaction; `write` signs and may run after the commit. */
export interface PreparedAccessToken {
  readonly write: () => string;
}

export async function prepareAccessToken(
  server: ServerContext,
  transaction: Transaction,
  content: AccessTokenContent,
): Promise<PreparedAccessToken> {
  const { config, keys } = server;
  const issuedAtMs = transaction.nowMs;
  const expiresAtMs = issuedAtMs + config.lifetimes.accessTokenMs;
  const id = content.authorizationId === undefined ? newId() : `${content.authorizationId}.${newId()}`;
  if (content.client.opaqueTokens) {
    const stored: StoredAccessToken = {
      id,
      authorizationId: content.authorizationId,
      clientId: content.client.id,
      subject: content.subject,
      scope: content.scope,
      audience: content.audience,
      issuedAtMs,
      expiresAtMs,
    };
    const token = await issueOpaqueToken(transaction, stored);
    return { write: () => token };
  }
  const claims = {
    ...content.userClaims,
    iss: config.issuer,
    sub: content.subject,
    aud: content.audience.length === 1 ? content.audience[0] : content.audience,
    client_id: content.client.id,
    scope: content.scope.length > 0 ? content.scope.join(" ") : undefined,
    iat: Math.floor(issuedAtMs / 1000),
    exp: Math.floor(expiresAtMs / 1000),
    jti: id,
    auth_time: content.authenticatedAtMs === undefined ? undefined : Math.floor(content.authenticatedAtMs / 1000),
  };
  const { algorithm, type } = tokenFormFor(config, content.audience);
  return { write: () => keys.sign(algorithm, type, claims) };
}

/** Of several audiences the first one that settings name decides. */
function tokenFormFor({ audienceTokens, defaultTokenForm }: Config, audiences: readonly string[]): TokenForm {
  for (const audience of audiences) {
    const form = audienceTokens.get(audience);
    if (form !== undefined) return form;
  }
  return defaultTokenForm;
}

/** The authorization that the id of an access token names. */
export function authorizationOfTokenId(id: string): string | undefined {
  const dot = id.indexOf(".");
  return dot < 0 ? undefined : id.slice(0, dot);
}
