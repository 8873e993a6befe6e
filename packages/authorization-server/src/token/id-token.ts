// ID tokens (OpenID Connect Core §2).
import { createHash } from "node:crypto";
import type { ServerContext } from "../server-context.ts";
import type { Authorization } from "../store/authorizations.ts";

export function writeIdToken(
  server: ServerContext,
  authorization: Authorization,
  accessToken: string,
  nowMs: number,
): string {
  const { config, keys } = server;
  return keys.sign(config.signingAlgorithm, "JWT", {
    iss: config.issuer,
    sub: authorization.userId,
    aud: authorization.clientId,
    iat: Math.floor(nowMs / 1000),
    exp: Math.floor((nowMs + config.lifetimes.idTokenMs) / 1000),
    auth_time: Math.floor(authorization.authenticatedAtMs / 1000),
    nonce: authorization.nonce,
    sid: authorization.sessionId,
    amr: ["pwd"],
    // Core §3.1.3.6: the left half of the digest that both ES256 and RS256 use.
    at_hash: createHash("sha256").update(accessToken, "ascii").digest().subarray(0, 16).toString("base64url"),
  });
}
