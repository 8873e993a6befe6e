// Signatures on certificates and requests: which algorithm a key signs with, and which ones are believed.
import { sign, verify, type KeyObject } from "node:crypto";
import { nullValue, objectIdentifier, sequence } from "../der/der-writer.ts";
import { DerError, type DerElement, DerReader, objectIdentifierText } from "../der/der-reader.ts";
import { oid } from "../der/object-identifiers.ts";

interface SignatureAlgorithm {
  readonly keyType: "ec" | "rsa" | "ed25519";
  /** Null where the algorithm hashes by itself. */
  readonly hash: "sha256" | "sha384" | "sha512" | null;
}

/** SHA-1 and MD5 are absent on purpose. */
const algorithms: ReadonlyMap<string, SignatureAlgorithm> = new Map([
  [oid.ecdsaWithSha256, { keyType: "ec", hash: "sha256" }],
  [oid.ecdsaWithSha384, { keyType: "ec", hash: "sha384" }],
  [oid.ecdsaWithSha512, { keyType: "ec", hash: "sha512" }],
  [oid.rsaWithSha256, { keyType: "rsa", hash: "sha256" }],
  [oid.rsaWithSha384, { keyType: "rsa", hash: "sha384" }],
  [oid.rsaWithSha512, { keyType: "rsa", hash: "sha512" }],
  [oid.ed25519, { keyType: "ed25519", hash: null }],
]);

/** What is believed in certificates besides: its parameters are left to OpenSSL, which verifies it. */
const alsoInCertificates: ReadonlySet<string> = new Set([oid.rsaPss]);

export function isTrustedCertificateSignature(algorithm: string): boolean {
  return algorithms.has(algorithm) || alsoInCertificates.has(algorithm);
}

/** The AlgorithmIdentifier that `signBytes` uses with this key. */
export function signatureAlgorithm(key: KeyObject): Buffer {
  const identifier = algorithmFor(key);
  // RFC 8017 wants NULL as parameters, RFC 5758 and RFC 8410 want none.
  return key.asymmetricKeyType === "rsa"
    ? sequence(objectIdentifier(identifier), nullValue())
    : sequence(objectIdentifier(identifier));
}

export function signBytes(bytes: Uint8Array, key: KeyObject): Buffer {
  return sign(algorithms.get(algorithmFor(key))!.hash, bytes, key);
}

/**
 * Whether the key has signed the bytes; false too for an algorithm that is unknown, weak, or of another kind of key.
 */
export function verifySignature(algorithm: string, bytes: Uint8Array, signature: Uint8Array, key: KeyObject): boolean {
  const known = algorithms.get(algorithm);
  return known?.keyType === key.asymmetricKeyType && verify(known!.hash, bytes, key, signature);
}

/** An AlgorithmIdentifier's object identifier. @throws {DerError} */
export function parseSignatureAlgorithm(found: DerElement): string {
  const reader = new DerReader(found.content);
  const identifier = objectIdentifierText(reader.read(0x06));
  if (!alsoInCertificates.has(identifier)) {
    const parameters = reader.optional(0x05);
    if (parameters !== undefined && parameters.content.length > 0) throw new DerError("a NULL is not empty");
    reader.end();
  }
  return identifier;
}

function algorithmFor(key: KeyObject): string {
  switch (key.asymmetricKeyType) {
    case "rsa":
      return oid.rsaWithSha256;
    case "ed25519":
      return oid.ed25519;
    case "ec": {
      // The hash is as strong as the curve.
      const curve = key.asymmetricKeyDetails?.namedCurve;
      if (curve === "secp521r1") return oid.ecdsaWithSha512;
      return curve === "secp384r1" ? oid.ecdsaWithSha384 : oid.ecdsaWithSha256;
    }
    default:
      throw new TypeError(`no signature with a key of type ${key.asymmetricKeyType ?? "unknown"}`);
  }
}
