// ID tokens (OpenID Connect Core §2).
import { createHash } from "node:crypto";
import { authenticationContext, authenticationMethods } from "../protocol/authentication-context.ts";
import type { ServerContext } from "../server-context.ts";
import type { Authorization } from "../store/authorizations.ts";
import type { Client } from "../store/clients.ts";
import type { UserClaims } from "../store/users.ts";

export interface IdTokenContent {
  readonly client: Client;
  readonly authorization: Authorization;
  /** What the client gets to know of the user in it, beside who it is. */
  readonly userClaims: UserClaims;
}

export function writeIdToken(
  { config, keys }: ServerContext,
  { client, authorization, userClaims }: IdTokenContent,
  accessToken: string,
  nowMs: number,
): string {
  return keys.sign(client.idTokenAlgorithm ?? config.signingAlgorithm, "JWT", {
    ...userClaims,
    iss: config.issuer,
    sub: authorization.userId,
    aud: authorization.clientId,
    iat: Math.floor(nowMs / 1000),
    exp: Math.floor((nowMs + config.lifetimes.idTokenMs) / 1000),
    auth_time: Math.floor(authorization.authenticatedAtMs / 1000),
    nonce: authorization.nonce,
    sid: authorization.sessionId,
    acr: authenticationContext(config),
    amr: authenticationMethods,
    // Core §3.1.3.6: the left half of the digest that both ES256 and RS256 use.
    at_hash: createHash("sha256").update(accessToken, "ascii").digest().subarray(0, 16).toString("base64url"),
  });
}
