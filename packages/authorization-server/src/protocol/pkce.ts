// Proof Key for Code Exchange (RFC 7636), method S256 only: RFC 9700 §2.1.1 advises against `plain`.
import { createHash, timingSafeEqual } from "node:crypto";

const unreserved43To128 = /^[A-Za-z0-9\-._~]{43,128}$/;

/** RFC 7636 §4.2: an S256 challenge is the base64url of 32 bytes, so exactly 43 characters. */
export function isS256Challenge(challenge: string): boolean {
  return /^[A-Za-z0-9\-_]{43}$/.test(challenge);
}

export function isVerifier(verifier: string): boolean {
  return unreserved43To128.test(verifier);
}

export function s256(verifier: string): string {
  return createHash("sha256").update(verifier, "ascii").digest("base64url");
}

export function verifierMatches(verifier: string, challenge: string): boolean {
  const computed = Buffer.from(s256(verifier), "ascii");
  const expected = Buffer.from(challenge, "ascii");
  return computed.length === expected.length && timingSafeEqual(computed, expected);
}
