// Random secrets and their digests. Everything made here has 256 bits, so a plain SHA-256 is a safe digest (RFC 6749
// §10.10 asks for a guessing probability of 2^-160 at most); passwords, which people choose, go to passwords.ts.
import { hash, randomBytes } from "node:crypto";

// One system call fills many tokens: randomBytes(32) costs more in call overhead than in entropy.
const pool = { bytes: Buffer.alloc(0), offset: 0 };

function take(length: number): Buffer {
  if (pool.offset + length > pool.bytes.length) {
    pool.bytes = randomBytes(4096);
    pool.offset = 0;
  }
  const slice = pool.bytes.subarray(pool.offset, pool.offset + length);
  pool.offset += length;
  return slice;
}

/** 256 random bits as 43 URL-safe characters. */
export function newSecret(): string {
  const bytes = take(32);
  const text = bytes.toString("base64url");
  // Nothing that was handed out stays readable in the pool.
  bytes.fill(0);
  return text;
}

/** 128 random bits as 22 URL-safe characters: a public identifier, not a credential. */
export function newId(): string {
  return take(16).toString("base64url");
}

/**
 * A public identifier whose first 8 characters are the time, so that rows made together lie together in their index;
 * the other 80 bits are random.
 */
export function newOrderedId(nowMs: number): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(nowMs, 0, 6);
  take(10).copy(bytes, 6);
  return bytes.toString("base64url");
}

/** Short enough to be read out on the telephone: ten characters of 32, 50 bits. */
export function newErrorId(): string {
  let text = "";
  for (const byte of take(10)) text += "0123456789abcdefghjkmnpqrstvwxyz"[byte & 31];
  return text;
}

/** What the store keeps of a secret. */
export function digest(secret: string): string {
  return hash("sha256", secret, "base64url");
}
