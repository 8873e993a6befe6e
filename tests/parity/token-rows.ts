// Tokens as clients send them, good and bad, against RequestAuthentications that use every field there is: what the
// client is answered, word for word, and what the application learns.
import { createHmac, type KeyObject } from "node:crypto";
import { exportJWK, exportSPKI, generateKeyPair, SignJWT } from "jose";

export interface TokenAnswer {
  readonly status: number;
  readonly body?: string;
  /** `WWW-Authenticate` behind the realm; null = there is none. */
  readonly challenge?: string | null;
  /** `%RESPONSE_CODE_DETAILS%`. */
  readonly details?: string;
  /** What the application received, by header; null: must be absent. */
  readonly received?: Readonly<Record<string, string | null>>;
}

export interface TokenRow {
  readonly name: string;
  /** `/<path>/<row>`; none = `/<row>`. */
  readonly path?: string;
  readonly query?: string;
  /** Each its own line, in order. */
  readonly headers: readonly (readonly [string, string])[];
  readonly expected: TokenAnswer;
  /** Why a client of HTTP/2 cannot say it. */
  readonly http1Alone?: string;
}

const issuer = "https://issuer.test";
const elsewhere = "https://elsewhere.test";
const strict = "https://strict.test";
const unfetched = "https://unfetched.test";
const unfetchedToo = "https://unfetched-too.test";

const { privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true });
const second = await generateKeyPair("ES256");
const stranger = await generateKeyPair("RS256");
const jwk = await exportJWK(publicKey);
const keySet = JSON.stringify({
  keys: [
    { ...jwk, kid: "first", alg: "RS256", use: "sig" },
    { ...(await exportJWK(second.publicKey)), kid: "second", alg: "ES256" },
  ],
});

export const requestAuthentications: readonly object[] = [
  authentication("tokens", {}, [
    {
      issuer,
      audiences: ["shop", "other-shop"],
      jwks: keySet,
      forwardOriginalToken: true,
      spaceDelimitedClaims: ["roles"],
    },
    // Nobody answers there, so that no token of it passes.
    { issuer: unfetched, jwksUri: "http://127.0.0.1:9/keys", audiences: ["shop"], timeout: "1s" },
    { issuer: unfetchedToo, jwks_uri: "http://127.0.0.1:9/keys", audiences: ["shop"], timeout: "1s" },
  ]),
  authentication("places", { selector: { matchLabels: { kind: "server" } } }, [
    {
      issuer: strict,
      audiences: ["shop"],
      jwks: keySet,
      fromHeaders: [{ name: "x-token" }, { name: "x-prefixed", prefix: "Token " }],
      fromParams: ["token"],
      fromCookies: ["token"],
      outputPayloadToHeader: "x-payload",
      outputClaimToHeaders: [
        { header: "x-subject", claim: "sub" },
        { header: "x-level", claim: "account.level" },
      ],
    },
  ]),
];

function authentication(name: string, target: object, jwtRules: readonly object[]): object {
  return {
    apiVersion: "security.tulle.io/v1",
    kind: "RequestAuthentication",
    metadata: { name, namespace: "shop" },
    spec: { ...target, jwtRules },
  };
}

/** Denies what asks for `/closed/…`, and guests. */
export const closed: object = {
  apiVersion: "security.tulle.io/v1",
  kind: "AuthorizationPolicy",
  metadata: { name: "closed", namespace: "shop" },
  spec: {
    action: "DENY",
    rules: [
      { to: [{ operation: { paths: ["/closed/*"] } }] },
      { when: [{ key: "request.auth.claims[roles]", values: ["guest"] }] },
    ],
  },
};

type Claims = Readonly<Record<string, unknown>>;
interface Signing {
  readonly header?: Readonly<Record<string, unknown>>;
  readonly key?: CryptoKey | KeyObject;
}

const nowSeconds = Math.floor(Date.now() / 1000);
const base64Url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

function payloadOf(claims: Claims): Claims {
  return { iss: issuer, aud: "shop", sub: "alice", exp: nowSeconds + 36_000, ...claims };
}

function token(claims: Claims = {}, { header = {}, key = privateKey }: Signing = {}): Promise<string> {
  return new SignJWT(payloadOf(claims)).setProtectedHeader({ alg: "RS256", kid: "first", ...header }).sign(key);
}

/** Signed by hand, as libraries would refuse to. */
function forged(header: Claims, sign: (text: string) => string, claims: Claims = {}): string {
  const text = `${base64Url(header)}.${base64Url(payloadOf(claims))}`;
  return `${text}.${sign(text)}`;
}

const hmac =
  (secret: string): ((text: string) => string) =>
  (text) =>
    createHmac("sha256", secret).update(text).digest("base64url");

const bearer = (text: string): readonly (readonly [string, string])[] => [["authorization", `Bearer ${text}`]];
const invalid = (body: string): TokenAnswer => ({
  status: 401,
  body,
  challenge: 'error="invalid_token"',
  details: `jwt_authn_access_denied{${body.replaceAll(" ", "_")}}`,
});
const forAnother = invalid("Audiences in Jwt are not allowed");
/** By the policy, whatever became of tokens that were looked at before it. */
const deniedBy = (rule: number): TokenAnswer => ({
  status: 403,
  body: "RBAC: access denied",
  details: `rbac_access_denied_matched_policy[ns[shop]-policy[closed]-rule[${rule}]]`,
});
const denied = deniedBy(0);
const wrongKey = invalid("Jwks doesn't have key to match kid or alg from Jwt");
const wrongSignature = invalid("Jwt verification fails");
const malformed = invalid("Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections");

export async function tokenRows(): Promise<readonly TokenRow[]> {
  const tables = [goodTokens(), forgedTokens(), wrongTokens(), severalTokens(), tokensAtPlaces(), deniedTokens()];
  return (await Promise.all(tables)).flat();
}

async function goodTokens(): Promise<readonly TokenRow[]> {
  const good = await token();
  return [
    { name: "no token", headers: [], expected: { status: 200, received: { authorization: null } } },
    {
      name: "a good one",
      headers: bearer(good),
      expected: { status: 200, received: { authorization: `Bearer ${good}`, "x-subject": null } },
    },
    { name: "a good one as a parameter", query: `access_token=${good}`, headers: [], expected: { status: 200 } },
    {
      name: "a good one of the second key",
      headers: bearer(await token({}, { header: { alg: "ES256", kid: "second" }, key: second.privateKey })),
      expected: { status: 200 },
    },
    {
      name: "a good one without key id",
      headers: bearer(await token({}, { header: { kid: undefined } })),
      expected: { status: 200 },
    },
    {
      name: "a good one for several",
      headers: bearer(await token({ aud: ["x", "other-shop"] })),
      expected: { status: 200 },
    },
    { name: "another scheme", headers: [["authorization", `Basic ${good}`]], expected: { status: 200 } },
  ];
}

async function forgedTokens(): Promise<readonly TokenRow[]> {
  const good = await token();
  const [head = "", , signature = ""] = good.split(".");
  const publicPem = await exportSPKI(publicKey);
  return [
    {
      name: "alg none",
      headers: bearer(forged({ alg: "none", kid: "first" }, () => "")),
      expected: malformed,
    },
    {
      name: "alg none with a signature",
      headers: bearer(forged({ alg: "none", kid: "first" }, () => signature)),
      expected: invalid("Jwt header [alg] is not supported"),
    },
    {
      name: "alg None",
      headers: bearer(forged({ alg: "None", kid: "first" }, () => signature)),
      expected: invalid("Jwt header [alg] is not supported"),
    },
    {
      name: "no alg",
      headers: bearer(forged({ kid: "first" }, () => signature)),
      expected: invalid("Jwt header [alg] field is required and must be a string"),
    },
    {
      name: "HS256 by the public key as PEM",
      headers: bearer(forged({ alg: "HS256", kid: "first" }, hmac(publicPem))),
      expected: wrongKey,
    },
    {
      name: "HS256 by the public key's modulus",
      headers: bearer(forged({ alg: "HS256", kid: "first" }, hmac(jwk.n!))),
      expected: wrongKey,
    },
    {
      name: "HS256 by the public key, without key id",
      headers: bearer(forged({ alg: "HS256" }, hmac(publicPem))),
      expected: wrongKey,
    },
    {
      name: "a key id that nobody has",
      headers: bearer(await token({}, { header: { kid: "third" } })),
      expected: wrongKey,
    },
    {
      name: "the other key's id",
      headers: bearer(await token({}, { header: { kid: "second" } })),
      expected: wrongKey,
    },
    {
      name: "a stranger's key",
      headers: bearer(await token({}, { key: stranger.privateKey })),
      expected: wrongSignature,
    },
    {
      name: "a stranger's key that the token brings along",
      headers: bearer(
        await token({}, { header: { jwk: await exportJWK(stranger.publicKey) }, key: stranger.privateKey }),
      ),
      expected: wrongSignature,
    },
    {
      name: "a payload that was changed",
      headers: bearer(`${head}.${base64Url(payloadOf({ sub: "root" }))}.${signature}`),
      expected: wrongSignature,
    },
  ];
}

async function wrongTokens(): Promise<readonly TokenRow[]> {
  const good = await token();
  const [head = "", payload = "", signature = ""] = good.split(".");
  const placed = await token({ iss: strict, account: { level: 3 } });
  return [
    { name: "another audience", headers: bearer(await token({ aud: "elsewhere" })), expected: forAnother },
    { name: "no audience", headers: bearer(await token({ aud: undefined })), expected: forAnother },
    { name: "a part of an audience", headers: bearer(await token({ aud: "sho" })), expected: forAnother },
    {
      name: "expired",
      headers: bearer(await token({ exp: nowSeconds - 120 })),
      expected: invalid("Jwt is expired"),
    },
    {
      name: "expired within the clocks' difference",
      headers: bearer(await token({ exp: nowSeconds - 1 })),
      expected: { status: 200 },
    },
    {
      name: "not yet valid",
      headers: bearer(await token({ nbf: nowSeconds + 3600 })),
      expected: invalid("Jwt not yet valid"),
    },
    {
      name: "an end that is no number",
      headers: bearer(await token({ exp: "tomorrow" })),
      expected: invalid("Jwt payload [exp] field is not an integer"),
    },
    {
      name: "another issuer",
      headers: bearer(await token({ iss: elsewhere })),
      expected: invalid("Jwt issuer is not configured"),
    },
    {
      name: "no issuer",
      headers: bearer(await token({ iss: undefined })),
      expected: invalid("Jwt issuer is not configured"),
    },
    {
      name: "an issuer whose keys are not there yet",
      headers: bearer(await token({ iss: unfetched })),
      expected: wrongKey,
    },
    {
      name: "an issuer whose keys are not there yet, in the older spelling",
      headers: bearer(await token({ iss: unfetchedToo })),
      expected: wrongKey,
    },
    {
      name: "an issuer's token where it does not look",
      headers: bearer(placed),
      expected: invalid("Jwt issuer is not configured"),
    },
    { name: "cut in the signature", headers: bearer(good.slice(0, -20)), expected: wrongSignature },
    { name: "cut before the signature", headers: bearer(`${head}.${payload}`), expected: malformed },
    {
      name: "cut in the header",
      headers: bearer(`${head.slice(0, 9)}.${payload}.${signature}`),
      expected: invalid("Jwt header is an invalid Base64url encoded"),
    },
    {
      name: "no base64",
      headers: bearer(`${head}.${payload}.a+b`),
      expected: invalid("Jwt signature is an invalid Base64url encoded"),
    },
    // What is left of the field is its scheme alone (RFC 9110 §5.5), and that is no token.
    {
      name: "nothing",
      headers: [["authorization", "Bearer "]],
      expected: { status: 200 },
      http1Alone: "a field of HTTP/2 does not end with a blank (RFC 9113 §8.2.1)",
    },
    { name: "a word", headers: bearer("word"), expected: malformed },
  ];
}

async function severalTokens(): Promise<readonly TokenRow[]> {
  const good = await token();
  return [
    {
      name: "two tokens in two headers of one name",
      headers: [...bearer(good), ...bearer(good)],
      expected: malformed,
    },
    {
      name: "a good one and a bad one",
      query: `access_token=${await token({ exp: nowSeconds - 3600 })}`,
      headers: bearer(good),
      expected: invalid("Jwt is expired"),
    },
    {
      name: "a bad one and a good one",
      query: `access_token=${good}`,
      headers: bearer(await token({}, { key: stranger.privateKey })),
      expected: wrongSignature,
    },
    { name: "two good ones", query: `access_token=${good}`, headers: bearer(good), expected: { status: 200 } },
  ];
}

async function tokensAtPlaces(): Promise<readonly TokenRow[]> {
  const good = await token();
  const placed = await token({ iss: strict, account: { level: 3 } });
  const [, placedPayload = ""] = placed.split(".");
  const taken: TokenAnswer = {
    status: 200,
    received: { "x-subject": "alice", "x-level": "3", "x-payload": placedPayload },
  };
  return [
    {
      name: "a header of its own",
      headers: [["x-token", placed]],
      expected: { ...taken, received: { ...taken.received, "x-token": null } },
    },
    {
      name: "a prefix of its own",
      headers: [["x-prefixed", `Token ${placed}`]],
      expected: { ...taken, received: { ...taken.received, "x-prefixed": null } },
    },
    { name: "a parameter of its own", query: `token=${placed}`, headers: [], expected: taken },
    { name: "a cookie", headers: [["cookie", `a=b; token=${placed}`]], expected: taken },
    {
      name: "claims that the client writes itself",
      headers: [
        ["x-subject", "root"],
        ["x-level", "9"],
        ["x-payload", "e30"],
      ],
      expected: { status: 200, received: { "x-subject": null, "x-level": null, "x-payload": null } },
    },
    {
      name: "claims that the client writes beside its token",
      headers: [
        ["x-subject", "root"],
        ["x-token", placed],
      ],
      expected: taken,
    },
    {
      name: "a token for another beside a good one",
      headers: [...bearer(good), ["x-token", await token({ iss: strict, aud: "elsewhere" })]],
      expected: { status: 200 },
    },
  ];
}

/** What a policy denies stays 403, also where one of the issuers has found a token that is not for this service. */
async function deniedTokens(): Promise<readonly TokenRow[]> {
  const good = await token();
  const forOthers = await token({ iss: strict, aud: "elsewhere" });
  const path = "closed";
  return [
    { name: "denied without a token", path, headers: [], expected: denied },
    { name: "denied with a good one", path, headers: bearer(good), expected: denied },
    {
      name: "denied for one of the words of a claim",
      headers: bearer(await token({ roles: "reader guest writer" })),
      expected: deniedBy(1),
    },
    {
      name: "a word of a claim that holds the denied one",
      headers: bearer(await token({ roles: "reader guests" })),
      expected: { status: 200 },
    },
    {
      name: "denied with a token for another beside a good one",
      path,
      headers: [...bearer(good), ["x-token", forOthers]],
      expected: denied,
    },
    {
      name: "denied with a token for another that is looked at before the good one",
      path,
      headers: [...bearer(await token({ aud: "elsewhere" })), ["x-token", await token({ iss: strict })]],
      expected: denied,
    },
    {
      name: "a token for another where a policy would deny",
      path,
      headers: bearer(await token({ aud: "elsewhere" })),
      expected: forAnother,
    },
    {
      name: "a token for another at a place of its own",
      headers: [["x-token", forOthers]],
      expected: forAnother,
    },
  ];
}
