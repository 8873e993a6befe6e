// A provider's public keys (JSON Web Key Set, RFC 7517) and the check of a signature by the one that is meant.
import { type KeyObject, createPublicKey } from "node:crypto";
import type { Jwt } from "./parse-jwt.ts";
import type { JwtFailure } from "./jwt-failure.ts";
import { isSignatureAlgorithm, signatureHolds, suitsKey } from "./signature-algorithm.ts";

interface VerificationKey {
  /** Empty = the key may be meant by any token. */
  readonly keyId: string;
  /** Empty = any algorithm that suits the key. */
  readonly algorithm: string;
  readonly keyType: string;
  readonly curve: string | undefined;
  readonly key: KeyObject;
}

/** RFC 7518 §3.3. */
const minRsaBits = 2048;
const ed25519SignatureBytes = 64;

export class KeySet {
  readonly #keys: readonly VerificationKey[];

  constructor(keys: readonly VerificationKey[]) {
    this.#keys = keys;
  }

  /** Undefined when the signature holds. */
  verify(jwt: Jwt): JwtFailure | undefined {
    let isMeant = false;
    for (const { keyId, algorithm, keyType, curve, key } of this.#keys) {
      if (jwt.keyId !== "" && keyId !== "" && keyId !== jwt.keyId) continue;
      if (algorithm !== "" && algorithm !== jwt.algorithm) continue;
      isMeant = true;
      if (!suitsKey(jwt.algorithm, keyType, curve)) continue;
      if (keyType === "OKP" && jwt.signature.length !== ed25519SignatureBytes) return "ed25519WrongLength";
      if (signatureHolds(jwt.algorithm, key, jwt.signedText, jwt.signature)) return undefined;
    }
    return isMeant ? "verificationFails" : "noMatchingKey";
  }
}

export type ReadKeySet =
  | {
      readonly ok: true;
      readonly keys: KeySet;
      /** Keys that are left out, and why. */
      readonly complaints: readonly string[];
    }
  | { readonly ok: false; readonly reason: string };

/** A set without a usable key is refused, as by Envoy: nobody means to refuse every token. */
export function readKeySet(text: string): ReadKeySet {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { ok: false, reason: "Jwks is an invalid JSON" };
  }
  if (typeof json !== "object" || json === null || !("keys" in json)) {
    return { ok: false, reason: "Jwks does not have [keys] field" };
  }
  if (!Array.isArray(json.keys)) return { ok: false, reason: "[keys] in Jwks is not an array" };
  const keys: VerificationKey[] = [];
  const complaints: string[] = [];
  for (const [index, one] of json.keys.entries()) {
    const key = readKey(one);
    if (typeof key === "string") complaints.push(`keys[${index}] is left out: ${key}`);
    else keys.push(key);
  }
  if (keys.length > 0) return { ok: true, keys: new KeySet(keys), complaints };
  return { ok: false, reason: ["Jwks doesn't have any valid public key", ...complaints].join("; ") };
}

/** The key, or why it cannot be used. */
function readKey(json: unknown): VerificationKey | string {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return "not an object";
  const jwk = json as Readonly<Record<string, unknown>>;
  const { kid = "", alg = "", kty, crv, use } = jwk;
  if (typeof kid !== "string" || typeof alg !== "string") return "[kid] and [alg] must be strings";
  if (use === "enc") return "it is for encryption";
  if (kty === "oct") return "keys that both sides share are not taken";
  if (kty !== "RSA" && kty !== "EC" && kty !== "OKP") return `[kty] ${JSON.stringify(kty)} is not supported`;
  const curve = typeof crv === "string" ? crv : undefined;
  if (alg !== "" && (!isSignatureAlgorithm(alg) || !suitsKey(alg, kty, curve))) {
    return `[alg] ${alg} is not for a key of this type`;
  }
  let key: KeyObject;
  try {
    key = createPublicKey({ key: publicPart(jwk), format: "jwk" });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const bits = key.asymmetricKeyDetails?.modulusLength;
  if (bits !== undefined && bits < minRsaBits) return `an RSA key needs ${minRsaBits} bits, not ${bits}`;
  return { keyId: kid, algorithm: alg, keyType: kty, curve, key };
}

/** A set with private parts in it is somebody's mistake; they are not looked at. */
function publicPart(jwk: Readonly<Record<string, unknown>>): Record<string, string> {
  const names = ["kty", "crv", "n", "e", "x", "y"];
  return Object.fromEntries(names.flatMap((name) => (typeof jwk[name] === "string" ? [[name, jwk[name]]] : [])));
}
