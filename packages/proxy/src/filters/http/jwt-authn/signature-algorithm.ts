// The algorithms of JSON Web Signatures (RFC 7518 §3.1, RFC 8037) and the kinds of key that each is for. A key is never
// used with an algorithm of another kind, whatever a token's header says (RFC 8725 §3.1).
import { type KeyObject, constants, verify } from "node:crypto";

interface AlgorithmRow {
  readonly keyType: "RSA" | "EC" | "OKP" | "oct";
  /** The curve of an EC or OKP key. */
  readonly curve?: string;
  readonly hash: "sha256" | "sha384" | "sha512" | null;
  readonly isPss?: boolean;
}

const algorithms = {
  RS256: { keyType: "RSA", hash: "sha256" },
  RS384: { keyType: "RSA", hash: "sha384" },
  RS512: { keyType: "RSA", hash: "sha512" },
  PS256: { keyType: "RSA", hash: "sha256", isPss: true },
  PS384: { keyType: "RSA", hash: "sha384", isPss: true },
  PS512: { keyType: "RSA", hash: "sha512", isPss: true },
  ES256: { keyType: "EC", curve: "P-256", hash: "sha256" },
  ES384: { keyType: "EC", curve: "P-384", hash: "sha384" },
  ES512: { keyType: "EC", curve: "P-521", hash: "sha512" },
  EdDSA: { keyType: "OKP", curve: "Ed25519", hash: null },
  // Known by name, so that a token says why it fails; keys that both sides share are not taken.
  HS256: { keyType: "oct", hash: "sha256" },
  HS384: { keyType: "oct", hash: "sha384" },
  HS512: { keyType: "oct", hash: "sha512" },
} as const satisfies Record<string, AlgorithmRow>;

export type SignatureAlgorithm = keyof typeof algorithms;

export function isSignatureAlgorithm(name: string): name is SignatureAlgorithm {
  return Object.hasOwn(algorithms, name);
}

/** Whether a key of that type and curve is one for the algorithm. */
export function suitsKey(algorithm: SignatureAlgorithm, keyType: string, curve: string | undefined): boolean {
  const row: AlgorithmRow = algorithms[algorithm];
  return row.keyType === keyType && (row.curve === undefined || row.curve === curve);
}

/** Whether the signature is of that text, by a key that suits the algorithm. */
export function signatureHolds(
  algorithm: SignatureAlgorithm,
  key: KeyObject,
  signedText: string,
  signature: Buffer,
): boolean {
  const row: AlgorithmRow = algorithms[algorithm];
  const data = Buffer.from(signedText, "latin1");
  try {
    if (row.isPss === true) {
      const padding = constants.RSA_PKCS1_PSS_PADDING;
      return verify(row.hash, data, { key, padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }, signature);
    }
    if (row.keyType === "EC") return verify(row.hash, data, { key, dsaEncoding: "ieee-p1363" }, signature);
    return verify(row.hash, data, key, signature);
  } catch {
    // OpenSSL refuses some malformed signatures by an error.
    return false;
  }
}
