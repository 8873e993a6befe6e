// A signed token and the RequestAuthentication that accepts it.
import { exportJWK, generateKeyPair, SignJWT } from "jose";

export interface SignedToken {
  /** `authorization: Bearer …` */
  readonly header: string;
  /** A manifest, JSON. */
  readonly authentication: string;
}

const issuer = "https://issuer.test";

/** As an authorization server signs access tokens: ES256, five minutes are an hour here. */
export async function signedToken(): Promise<SignedToken> {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid: "bench", alg: "ES256" };
  const token = await new SignJWT({ scope: "openid catalog.read catalog.write", client_id: "bench" })
    .setProtectedHeader({ alg: "ES256", kid: "bench", typ: "at+jwt" })
    .setIssuer(issuer)
    .setSubject("user-1")
    .setAudience("catalog")
    .setIssuedAt()
    .setExpirationTime("1h")
    .sign(privateKey);
  const authentication = {
    apiVersion: "security.istio.io/v1",
    kind: "RequestAuthentication",
    metadata: { name: "tokens", namespace: "shop" },
    spec: {
      selector: { matchLabels: { app: "server" } },
      jwtRules: [{ issuer, audiences: ["catalog"], jwks: JSON.stringify({ keys: [jwk] }), forwardOriginalToken: true }],
    },
  };
  return { header: `authorization: Bearer ${token}`, authentication: JSON.stringify(authentication) };
}
