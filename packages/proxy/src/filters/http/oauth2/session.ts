// What the browser's cookies say: who is signed in, until when. A session is five cookies; one of them is a MAC over
// the others, so that cookies of two sessions, or of two sites, do not mix (Envoy: OAuth2CookieValidator).
import type { OAuth2Config } from "./oauth2-config.ts";
import { type CookieSettings, deleteCookieText, maxCookieBytes, setCookieText } from "./cookies.ts";
import { type CookieSealer, textsAreEqual } from "./sealing.ts";
import { claimsOf, type Tokens } from "./token-client.ts";

export interface Session {
  readonly isValid: boolean;
  readonly accessToken: string;
  readonly idToken: string;
  /** Authenticated by itself: it outlives the MAC's cookie. Empty = none. */
  readonly refreshToken: string;
}

export type Cookies = ReadonlyMap<string, string>;

/** `site` is the host that the cookies belong to, or their domain. */
export function readSession(
  config: OAuth2Config,
  cookies: Cookies,
  site: string,
  sealer: CookieSealer,
  nowSeconds: number,
): Session {
  const names = config.cookieNames;
  const open = (name: string): string => {
    const sealed = cookies.get(name);
    return sealed === undefined ? "" : (sealer.open(sealed, sealingUse(name, site)) ?? "");
  };
  const accessToken = open(names.bearerToken);
  const idToken = open(names.idToken);
  const refreshToken = open(names.refreshToken);
  const expires = cookies.get(names.oauthExpires) ?? "";
  const mac = sessionMac(sealer, site, expires, accessToken, idToken, refreshToken);
  const isAuthentic = textsAreEqual(mac, cookies.get(names.oauthHmac) ?? "");
  const isCurrent = /^\d{1,15}$/.test(expires) && Number(expires) > nowSeconds;
  return { isValid: isAuthentic && isCurrent, accessToken, idToken, refreshToken };
}

/** Set-Cookie values that make the tokens a session; undefined when one would be longer than browsers keep. */
export function sessionCookies(
  config: OAuth2Config,
  tokens: Tokens,
  before: Cookies,
  site: string,
  sealer: CookieSealer,
  nowSeconds: number,
): readonly string[] | undefined {
  const { cookieNames: names, cookieSettings, cookieDomain } = config;
  const accessToken = config.keepsAccessToken ? tokens.accessToken : "";
  const idToken = config.keepsIdToken ? tokens.idToken : "";
  const refreshToken = config.usesRefreshToken && config.keepsRefreshToken ? tokens.refreshToken : "";
  const expires = String(nowSeconds + tokens.expiresSeconds);
  const cookies: string[] = [];
  let isTooLong = false;
  const set = (use: keyof typeof names, value: string, maxAgeSeconds: number): void => {
    if (names[use].length + value.length > maxCookieBytes) isTooLong = true;
    cookies.push(setCookieText(names[use], value, maxAgeSeconds, cookieSettings[use], cookieDomain));
  };
  const setSealed = (use: keyof typeof names, token: string, maxAgeSeconds: number): void => {
    const name = names[use];
    if (token !== "") set(use, sealer.seal(token, sealingUse(name, site)), maxAgeSeconds);
    else if (before.has(name)) cookies.push(deleteCookieText(name, cookieSettings[use], cookieDomain));
  };
  set("oauthHmac", sessionMac(sealer, site, expires, accessToken, idToken, refreshToken), tokens.expiresSeconds);
  set("oauthExpires", expires, tokens.expiresSeconds);
  setSealed("bearerToken", accessToken, tokens.expiresSeconds);
  const idSeconds = config.idTokenCookieFollowsAccessToken ? undefined : secondsLeft(idToken, nowSeconds);
  setSealed("idToken", idToken, idSeconds ?? tokens.expiresSeconds);
  setSealed(
    "refreshToken",
    refreshToken,
    secondsLeft(refreshToken, nowSeconds) ?? config.defaultRefreshTokenExpiresSeconds,
  );
  return isTooLong ? undefined : cookies;
}

/** Set-Cookie values that end the session and every sign-in under way. */
export function endedSessionCookies(config: OAuth2Config, cookies: Cookies): readonly string[] {
  const { cookieNames: names, cookieSettings, cookieDomain } = config;
  const end = (name: string, settings: CookieSettings): string => deleteCookieText(name, settings, cookieDomain);
  return [
    end(names.oauthHmac, cookieSettings.oauthHmac),
    end(names.bearerToken, cookieSettings.bearerToken),
    end(names.idToken, cookieSettings.idToken),
    end(names.refreshToken, cookieSettings.refreshToken),
    end(names.oauthExpires, cookieSettings.oauthExpires),
    ...[...cookies.keys()]
      .filter((name) => isFlowCookie(config, name))
      .map((name) =>
        end(name, name.startsWith(names.oauthNonce) ? cookieSettings.oauthNonce : cookieSettings.codeVerifier),
      ),
  ];
}

export function isSessionCookie({ cookieNames: names }: OAuth2Config, name: string): boolean {
  return (
    name === names.bearerToken ||
    name === names.oauthHmac ||
    name === names.oauthExpires ||
    name === names.idToken ||
    name === names.refreshToken
  );
}

/** Cookies of a sign-in under way carry its id behind a dot, so that several tabs can sign in at once. */
export function isFlowCookie({ cookieNames: names }: OAuth2Config, name: string): boolean {
  return [names.oauthNonce, names.codeVerifier].some((base) => name === base || name.startsWith(`${base}.`));
}

export function sealingUse(cookieName: string, site: string): string {
  return `${cookieName}\n${site}`;
}

function sessionMac(sealer: CookieSealer, ...parts: readonly string[]): string {
  return sealer.mac(parts.join("\n"));
}

/** By the `exp` claim; undefined where the token says none. */
function secondsLeft(token: string, nowSeconds: number): number | undefined {
  const expires = token === "" ? undefined : claimsOf(token)?.["exp"];
  return typeof expires === "number" && expires > 0 ? Math.max(0, Math.floor(expires - nowSeconds)) : undefined;
}
