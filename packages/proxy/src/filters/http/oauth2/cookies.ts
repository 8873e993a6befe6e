// Cookies as the filter reads, sets, deletes and takes them off (RFC 6265; Envoy: OAuth2Credentials.cookie_names,
// CookieConfigs).
import type { HeaderMap } from "../../../http/header-map.ts";

export interface CookieNames {
  readonly bearerToken: string;
  readonly oauthHmac: string;
  readonly oauthExpires: string;
  readonly idToken: string;
  readonly refreshToken: string;
  readonly oauthNonce: string;
  readonly codeVerifier: string;
}

export interface CookieSettings {
  readonly path: string;
  /** `Strict`, `Lax`, `None`; undefined = the attribute is left out. */
  readonly sameSite: "Strict" | "Lax" | "None" | undefined;
  readonly isPartitioned: boolean;
}

/** Browsers drop a longer cookie without a word (RFC 6265 §6.1). */
export const maxCookieBytes = 4096;

/** The first of a name wins, as in Envoy. */
export function readCookies(headers: HeaderMap): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>();
  forEachCookie(headers, (name, value) => {
    if (name !== "" && !cookies.has(name)) cookies.set(name, withoutQuotes(value));
  });
  return cookies;
}

/** Takes cookies off the request; the others keep their order and text. */
export function removeCookies(headers: HeaderMap, isRemoved: (name: string) => boolean): void {
  const kept: string[] = [];
  let removed = false;
  forEachCookie(headers, (name, value) => {
    if (isRemoved(name)) removed = true;
    else kept.push(value === undefined ? name : `${name}=${value}`);
  });
  if (!removed) return;
  if (kept.length === 0) headers.remove("cookie");
  else headers.set("cookie", kept.join("; "));
}

export function setCookieText(
  name: string,
  value: string,
  maxAgeSeconds: number,
  settings: CookieSettings,
  domain: string,
): string {
  const domainText = domain === "" ? "" : `;domain=${domain}`;
  const sameSite = settings.sameSite === undefined ? "" : `;SameSite=${settings.sameSite}`;
  const partitioned = settings.isPartitioned ? ";Partitioned" : "";
  return `${name}=${value}${domainText};path=${settings.path};Max-Age=${maxAgeSeconds};secure;HttpOnly${sameSite}${partitioned}`;
}

export function deleteCookieText(name: string, settings: CookieSettings, domain: string): string {
  const domainText = domain === "" ? "" : `;domain=${domain}`;
  // Browsers take prefixed names, and Partitioned, only together with Secure.
  const isSecure = name.startsWith("__Secure-") || name.startsWith("__Host-") || settings.isPartitioned;
  const attributes = `${isSecure ? "; Secure" : ""}${settings.isPartitioned ? "; Partitioned" : ""}`;
  return `${name}=deleted; path=${settings.path}; expires=Thu, 01 Jan 1970 00:00:00 GMT${domainText}${attributes}`;
}

function forEachCookie(headers: HeaderMap, visit: (name: string, value: string | undefined) => void): void {
  const { entries } = headers;
  for (let index = 0; index < entries.length; index += 2) {
    if (entries[index] !== "cookie") continue;
    for (const part of entries[index + 1]!.split(";")) {
      const equals = part.indexOf("=");
      if (equals >= 0) visit(part.slice(0, equals).trim(), part.slice(equals + 1).trim());
      else if (part.trim() !== "") visit(part.trim(), undefined);
    }
  }
}

function withoutQuotes(value: string | undefined): string {
  if (value === undefined) return "";
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}
