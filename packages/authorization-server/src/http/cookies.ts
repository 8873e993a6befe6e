// The cookies: which browser this is, which sign-in it has, and whose browser it is known to be. All are host-only,
// HttpOnly and limited to the issuer's path; under https their names carry the prefix that makes browsers insist on
// that.
import type { Config } from "../config/config.ts";

/** Of the cookie `browser`; each sign-in page begins it anew. */
export const browserCookieMs = 30 * 86_400_000;

export type CookieName = "browser" | "session" | "device";

/** Random secrets; what is sealed for a device is longer. */
const valuePatterns: Readonly<Record<CookieName, RegExp>> = {
  browser: /^[A-Za-z0-9_-]{43}$/,
  session: /^[A-Za-z0-9_-]{43}$/,
  device: /^[A-Za-z0-9_-]{40,400}$/,
};

function fullName(config: Config, name: CookieName): string {
  if (!config.issuer.startsWith("https:")) return `tulle_${name}`;
  return `${cookiePath(config) === "/" ? "__Host-" : "__Secure-"}tulle_${name}`;
}

function cookiePath(config: Config): string {
  return new URL(config.issuer).pathname;
}

export function readCookie(config: Config, header: string | undefined, name: CookieName): string | undefined {
  return readCookieValue(header, fullName(config, name), valuePatterns[name]);
}

/** The first of this name and shape. */
export function readCookieValue(header: string | undefined, name: string, shape: RegExp): string | undefined {
  if (header === undefined) return undefined;
  for (const pair of header.split(";")) {
    const equals = pair.indexOf("=");
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue;
    const value = pair.slice(equals + 1).trim();
    if (shape.test(value)) return value;
  }
  return undefined;
}

/** `maxAgeMs` 0 deletes the cookie. */
export function setCookie(config: Config, name: CookieName, value: string, maxAgeMs: number): string {
  const secure = config.issuer.startsWith("https:") ? "; Secure" : "";
  const maxAge = Math.floor(maxAgeMs / 1000);
  return `${fullName(config, name)}=${value}; Path=${cookiePath(config)}; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`;
}
