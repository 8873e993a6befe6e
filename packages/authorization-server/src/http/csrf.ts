// Tokens that tie a form to the browser it was made for, to one page and to what that page showed. The key is the
// browser's own secret cookie, so nothing needs to be stored.
import { createHmac, timingSafeEqual } from "node:crypto";

export function csrfToken(browserSecret: string, ...about: readonly string[]): string {
  return createHmac("sha256", browserSecret).update(JSON.stringify(about)).digest("base64url");
}

export function csrfMatches(token: string | undefined, browserSecret: string, ...about: readonly string[]): boolean {
  if (token === undefined) return false;
  const expected = Buffer.from(csrfToken(browserSecret, ...about));
  const given = Buffer.from(token);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
