// What a successful grant gives, and its JSON (RFC 6749 §5.1).
import type { Answer } from "../http/messages.ts";
import { json } from "../http/messages.ts";
import { formatScope, parseScope, sameScope } from "../protocol/scope.ts";
import type { ServerContext } from "../server-context.ts";
import type { Authorization } from "../store/authorizations.ts";
import type { PreparedAccessToken } from "./access-token.ts";
import { writeIdToken } from "./id-token.ts";

export interface TokenSuccess {
  readonly accessToken: PreparedAccessToken;
  readonly refreshToken: string | undefined;
  readonly scope: readonly string[];
  /** As the client sent it; the answer names the scope where it differs (§3.3). */
  readonly scopeAsked: string | undefined;
  /** Present when an ID token goes with it. */
  readonly idTokenFor: Authorization | undefined;
  readonly nowMs: number;
}

export function tokenAnswer(server: ServerContext, success: TokenSuccess): Answer {
  const accessToken = success.accessToken.write();
  const asked = success.scopeAsked === undefined ? undefined : parseScope(success.scopeAsked);
  const differs = asked === undefined || !sameScope(asked, success.scope);
  return json(200, {
    access_token: accessToken,
    token_type: "bearer",
    expires_in: Math.floor(server.config.lifetimes.accessTokenMs / 1000),
    refresh_token: success.refreshToken,
    scope: differs && success.scope.length > 0 ? formatScope(success.scope) : undefined,
    id_token:
      success.idTokenFor === undefined
        ? undefined
        : writeIdToken(server, success.idTokenFor, accessToken, success.nowMs),
  });
}
