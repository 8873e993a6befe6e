// Keys and tokens for tests: good ones of every algorithm, and ones that are wrong in a chosen way.
import { type KeyObject, constants, createHmac, generateKeyPairSync, sign } from "node:crypto";

export interface TestKey {
  readonly algorithm: string;
  readonly privateKey: KeyObject;
  /** The public key as a JWK with `kid` and `alg`. */
  readonly jwk: Readonly<Record<string, unknown>>;
}

const rsa = (modulusLength = 2048): KeyPair => generateKeyPairSync("rsa", { modulusLength });
const ec = (namedCurve: string) => (): KeyPair => generateKeyPairSync("ec", { namedCurve });

interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

const generators: Readonly<Record<string, (rsaBits?: number) => KeyPair>> = {
  RS: rsa,
  PS: rsa,
  ES256: ec("P-256"),
  ES384: ec("P-384"),
  ES512: ec("P-521"),
  EdDSA: () => generateKeyPairSync("ed25519"),
};

export function makeKey(algorithm: string, kid: string, rsaBits?: number): TestKey {
  const { publicKey, privateKey } = (generators[algorithm] ?? generators[algorithm.slice(0, 2)]!)(rsaBits);
  return { algorithm, privateKey, jwk: { ...publicKey.export({ format: "jwk" }), kid, alg: algorithm } };
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Header fields of undefined are left out. */
export function signToken(key: TestKey, claims: object, header: object = {}): string {
  const head = { alg: key.algorithm, typ: "JWT", kid: key.jwk["kid"], ...header };
  return signEncoded(key, encode(head), encode(claims));
}

/** Over parts that need not be JSON. */
export function signEncoded(key: TestKey, header: string, payload: string): string {
  const { algorithm, privateKey } = key;
  const data = Buffer.from(`${header}.${payload}`);
  const digest = algorithm === "EdDSA" ? null : `sha${algorithm.slice(2)}`;
  const signature = sign(digest, data, {
    key: privateKey,
    dsaEncoding: "ieee-p1363",
    ...(algorithm.startsWith("PS") && {
      padding: constants.RSA_PKCS1_PSS_PADDING,
      saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
    }),
  });
  return `${header}.${payload}.${signature.toString("base64url")}`;
}

/** Signed by the public key as if it were a shared secret: the confusion of algorithms of RFC 8725 §2.1. */
export function signWithPublicKey(publicText: string, claims: object, kid: string): string {
  const data = `${encode({ alg: "HS256", typ: "JWT", kid })}.${encode(claims)}`;
  return `${data}.${createHmac("sha256", publicText).update(data).digest("base64url")}`;
}

export function unsignedToken(claims: object): string {
  return `${encode({ alg: "none", typ: "JWT" })}.${encode(claims)}.`;
}
