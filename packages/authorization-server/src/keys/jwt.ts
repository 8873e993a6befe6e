// Compact JWS signing and verification for this server's own tokens, on node:crypto directly: a signature takes 25 µs
// here, and each asynchronous WebCrypto call would add a trip to the thread pool. Tests check both ways against jose.
import { sign as signBytes, verify as verifyBytes } from "node:crypto";
import type { KeyObject } from "node:crypto";

export const signingAlgorithms = ["RS256", "ES256"] as const;
export type SigningAlgorithm = (typeof signingAlgorithms)[number];

export interface VerificationKey {
  readonly id: string;
  readonly algorithm: SigningAlgorithm;
  readonly publicKey: KeyObject;
}

export interface SigningKey extends VerificationKey {
  readonly privateKey: KeyObject;
}

export type JwtType = "at+jwt" | "JWT" | "logout+jwt";
export type JwtClaims = Readonly<Record<string, unknown>>;

const headers = new WeakMap<SigningKey, Map<JwtType, string>>();

function encodedHeader(key: SigningKey, type: JwtType): string {
  let ofKey = headers.get(key);
  if (ofKey === undefined) headers.set(key, (ofKey = new Map()));
  let header = ofKey.get(type);
  if (header === undefined) {
    header = base64url(JSON.stringify({ alg: key.algorithm, typ: type, kid: key.id }));
    ofKey.set(type, header);
  }
  return header;
}

function base64url(text: string): string {
  return Buffer.from(text, "utf8").toString("base64url");
}

export function signJwt(key: SigningKey, type: JwtType, claims: JwtClaims): string {
  const input = `${encodedHeader(key, type)}.${base64url(JSON.stringify(claims))}`;
  const signature = signBytes("sha256", Buffer.from(input), { key: key.privateKey, dsaEncoding: "ieee-p1363" });
  return `${input}.${signature.toString("base64url")}`;
}

export interface VerifiedJwt {
  readonly keyId: string;
  readonly type: string;
  readonly claims: JwtClaims;
}

/**
 * What tells our two kinds of JWTs apart, whatever `typ` an audience wants: each access token names its client (RFC
 * 9068 §2.2), no ID token does.
 */
export function isAccessToken({ claims }: VerifiedJwt): boolean {
  return typeof claims["client_id"] === "string";
}

export function isIdToken(jwt: VerifiedJwt): boolean {
  return jwt.type === "JWT" && !isAccessToken(jwt);
}

/**
 * Claims of a JWT that one of our keys signed; undefined for everything else. Expiry and audience are the caller's
 * matter. The algorithm is the key's, never the header's choice (RFC 8725 §3.1).
 */
export function verifyJwt(
  token: string,
  findKey: (id: string) => VerificationKey | undefined,
): VerifiedJwt | undefined {
  const match = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/.exec(token);
  if (match === null || token.length > 8192) return undefined;
  const [, headerText, payloadText, signatureText] = match as unknown as [string, string, string, string];
  const header = parseObject(headerText);
  if (header === undefined || typeof header["kid"] !== "string" || header["crit"] !== undefined) return undefined;
  const key = findKey(header["kid"]);
  if (key === undefined || header["alg"] !== key.algorithm) return undefined;
  const verified = verifyBytes(
    "sha256",
    Buffer.from(`${headerText}.${payloadText}`),
    { key: key.publicKey, dsaEncoding: "ieee-p1363" },
    Buffer.from(signatureText, "base64url"),
  );
  if (!verified) return undefined;
  const claims = parseObject(payloadText);
  if (claims === undefined) return undefined;
  return { keyId: key.id, type: typeof header["typ"] === "string" ? header["typ"] : "", claims };
}

function parseObject(encoded: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(encoded, "base64url").toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
