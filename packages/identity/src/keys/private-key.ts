// Reads and writes private keys as PEM.
import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";

/** PKCS #8, which every TLS stack reads. */
export function privateKeyPem(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" });
}

/** PKCS #8, PKCS #1 or SEC 1 without a passphrase; undefined for anything else. */
export function parsePrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

/** The SubjectPublicKeyInfo (RFC 5280 §4.1.2.7) that belongs to a private or public key. */
export function publicKeyInfo(key: KeyObject): Buffer {
  return (key.type === "private" ? createPublicKey(key) : key).export({ type: "spki", format: "der" });
}
