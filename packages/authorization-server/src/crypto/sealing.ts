// Authenticated encryption of what the store must be able to give back: private keys, and the successor of a refresh
// token within its grace time. AES-256-GCM with a fresh key or nonce each time; the context is bound in.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

const nonceBytes = 12;
const tagBytes = 16;

/** `context` says what the text is for; opening needs the same one. */
export function seal(key: Buffer, text: string, context: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString("base64url");
}

/** The sealed text; undefined when key, context or content are not what was sealed. */
export function unseal(key: Buffer, sealedText: string, context: string): string | undefined {
  const bytes = Buffer.from(sealedText, "base64url");
  if (bytes.length < nonceBytes + tagBytes) return undefined;
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes));
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes));
  try {
    const middle = bytes.subarray(nonceBytes, bytes.length - tagBytes);
    return Buffer.concat([decipher.update(middle), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

/** A key that only the holder of `secret` can derive; the store keeps a digest of it, never the secret. */
export function keyFromSecret(secret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", purpose, 32));
}
