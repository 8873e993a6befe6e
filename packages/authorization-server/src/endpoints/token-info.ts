// What a token says and whether it holds, whichever kind it is: the common ground of introspection, revocation and
// userinfo.
import { isAccessToken } from "../keys/jwt.ts";
import type { ServerContext } from "../server-context.ts";
import { findOpaqueToken, isTokenInForce } from "../store/access-tokens.ts";
import { findAuthorization } from "../store/authorizations.ts";
import { findRefreshToken } from "../store/refresh-tokens.ts";
import { authorizationOfTokenId } from "../token/access-token.ts";

export interface TokenInfo {
  readonly kind: "access_token" | "refresh_token";
  readonly id: string;
  readonly clientId: string;
  readonly subject: string;
  readonly scope: readonly string[];
  readonly audience: readonly string[];
  readonly issuedAtMs: number | undefined;
  readonly expiresAtMs: number;
  readonly authorizationId: string | undefined;
}

/** Undefined for everything that is not a token of ours in force. */
export async function activeToken(server: ServerContext, token: string): Promise<TokenInfo | undefined> {
  // Three parts make a JWT; our opaque tokens have no dots.
  return token.includes(".") ? activeJwt(server, token) : activeOpaque(server, token);
}

async function activeJwt(server: ServerContext, token: string): Promise<TokenInfo | undefined> {
  const jwt = server.keys.verify(token);
  if (jwt === undefined || !isAccessToken(jwt)) return undefined;
  const { sub, aud, client_id: clientId, scope, iat, exp, jti } = jwt.claims as Record<string, never>;
  const info: TokenInfo = {
    kind: "access_token",
    id: String(jti),
    clientId: String(clientId),
    subject: String(sub),
    scope: typeof scope === "string" ? (scope as string).split(" ") : [],
    audience: Array.isArray(aud) ? aud : [String(aud)],
    issuedAtMs: Number(iat) * 1000,
    expiresAtMs: Number(exp) * 1000,
    authorizationId: authorizationOfTokenId(String(jti)),
  };
  return server.database.read(async (reader) => {
    if (reader.nowMs >= info.expiresAtMs) return undefined;
    return (await isTokenInForce(reader, info)) ? info : undefined;
  });
}

async function activeOpaque(server: ServerContext, token: string): Promise<TokenInfo | undefined> {
  return server.database.read(async (reader) => {
    const access = await findOpaqueToken(reader, token);
    if (access !== undefined) {
      return (await isTokenInForce(reader, access)) ? { kind: "access_token", ...access } : undefined;
    }
    const refresh = await findRefreshToken(reader, token);
    if (refresh === undefined || refresh.usedAtMs !== undefined || refresh.expiresAtMs <= reader.nowMs)
      return undefined;
    const authorization = await findAuthorization(reader, refresh.authorizationId);
    if (authorization === undefined || authorization.revokedAtMs !== undefined) return undefined;
    return {
      kind: "refresh_token",
      id: authorization.id,
      clientId: authorization.clientId,
      subject: authorization.userId,
      scope: authorization.scope,
      audience: authorization.resources,
      issuedAtMs: undefined,
      expiresAtMs: refresh.expiresAtMs,
      authorizationId: authorization.id,
    };
  });
}
