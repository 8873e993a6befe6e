// What an ID token from the token endpoint itself has to say (OpenID Connect Core §3.1.3.7): it is for this client,
// lives, and answers the sign-in that asked for it. Its signature need not be looked at there.
import type { OAuth2Config } from "./oauth2-config.ts";
import { claimsOf } from "./token-client.ts";

/** Undefined for a good one, and where there is none or nobody asked for one: PKCE binds the code as well. */
export function faultOfIdToken(
  { isOpenId, clientId }: Pick<OAuth2Config, "isOpenId" | "clientId">,
  idToken: string,
  nonce: string,
  nowSeconds: number,
): string | undefined {
  if (!isOpenId || idToken === "") return undefined;
  const claims = claimsOf(idToken);
  if (claims === undefined) return "The ID token is not a JWT";
  if (claims["nonce"] !== nonce) return "The ID token has another nonce";
  const audience = claims["aud"];
  const audiences: readonly unknown[] = Array.isArray(audience) ? audience : [audience];
  if (!audiences.includes(clientId)) return "The ID token is for another client";
  const expires = claims["exp"];
  return typeof expires === "number" && expires > nowSeconds ? undefined : "The ID token has expired";
}
