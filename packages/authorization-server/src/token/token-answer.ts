// What a successful grant gives, and its JSON (RFC 6749 §5.1).
import type { Answer } from "../http/messages.ts";
import { json } from "../http/messages.ts";
import { formatScope } from "../protocol/scope.ts";
import type { ServerContext } from "../server-context.ts";
import type { PreparedAccessToken } from "./access-token.ts";
import type { IdTokenContent } from "./id-token.ts";
import { writeIdToken } from "./id-token.ts";

export interface TokenSuccess {
  readonly accessToken: PreparedAccessToken;
  readonly refreshToken: string | undefined;
  readonly scope: readonly string[];
  readonly idToken: IdTokenContent | undefined;
  readonly nowMs: number;
}

export function tokenAnswer(server: ServerContext, success: TokenSuccess): Answer {
  const accessToken = success.accessToken.write();
  return json(200, {
    access_token: accessToken,
    token_type: "bearer",
    expires_in: Math.floor(server.config.lifetimes.accessTokenMs / 1000),
    refresh_token: success.refreshToken,
    // RFC 6749 §5.1 wants it where it differs from what was asked for; clients want to read it without comparing.
    scope: success.scope.length > 0 ? formatScope(success.scope) : undefined,
    id_token:
      success.idToken === undefined ? undefined : writeIdToken(server, success.idToken, accessToken, success.nowMs),
  });
}
