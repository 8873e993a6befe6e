// The `state` that travels through the authorization server: where the browser wanted to go, and what binds the answer
// to it (RFC 6749 §10.12). Its form is Envoy's.
import { type CookieSealer, isCsrfToken, textsAreEqual } from "./sealing.ts";

export interface LoginState {
  readonly url: string;
  readonly csrfToken: string;
  readonly flowId: string;
}

/** More than this is not of ours: the request line that carried the URL was shorter. */
const maxStateBytes = 96 * 1024;

const flowIdPattern = /^[0-9a-f]{1,64}$/;

export function encodeState({ url, csrfToken, flowId }: LoginState): string {
  return Buffer.from(JSON.stringify({ url, csrf_token: csrfToken, flow_id: flowId })).toString("base64url");
}

/** Undefined when it is none; that it is true, only the browser's cookie says. */
export function decodeState(text: string): LoginState | undefined {
  if (text.length > maxStateBytes) return undefined;
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
  if (typeof json !== "object" || json === null) return undefined;
  const { url, csrf_token: csrfToken, flow_id: flowId } = json as Record<string, unknown>;
  if (typeof url !== "string" || typeof csrfToken !== "string" || typeof flowId !== "string") return undefined;
  return flowIdPattern.test(flowId) ? { url, csrfToken, flowId } : undefined;
}

/** The browser that brings the state is the one that was sent away with it. */
export function isBoundToBrowser(state: LoginState, cookie: string | undefined, sealer: CookieSealer): boolean {
  if (cookie === undefined || !textsAreEqual(cookie, state.csrfToken)) return false;
  return state.csrfToken.startsWith(`${state.flowId}.`) && isCsrfToken(state.csrfToken, sealer);
}

/**
 * Where the browser may be sent back to: a page of the site that asks, or of a domain that the configuration names
 * (allowed_redirect_domains). Anything else would make the gateway an open redirector (RFC 9700 §4.11).
 */
export function isAllowedReturn(url: string, site: string, allowedDomains: readonly string[]): boolean {
  // The parser drops line breaks and tabs, and the answer's head would not (RFC 9112 §11.1).
  if (!isVisible(url)) return false;
  const parsed = URL.parse(url);
  if (parsed === null || (parsed.protocol !== "http:" && parsed.protocol !== "https:")) return false;
  if (parsed.username !== "" || parsed.password !== "") return false;
  if (allowedDomains.length > 0) return isAllowedDomain(parsed.hostname, allowedDomains);
  return parsed.origin === URL.parse(site)?.origin;
}

function isVisible(text: string): boolean {
  return /^[^\0-\x20\x7f]*$/.test(text);
}

export function isAllowedDomain(hostname: string, allowedDomains: readonly string[]): boolean {
  const host = hostname.toLowerCase();
  return allowedDomains.some((domain) => {
    const wanted = domain.toLowerCase();
    return wanted.startsWith("*.")
      ? host.endsWith(wanted.slice(1)) && host.length > wanted.length - 1
      : host === wanted;
  });
}
