// The request with which a browser comes back from the authorization server (RFC 6749 §4.1.2): what it must bring, and
// what binds it to the sign-in that it belongs to.
import type { Cookies } from "./session.ts";
import { decodeState, isAllowedReturn, isBoundToBrowser, type LoginState } from "./login-state.ts";
import type { OAuth2Config } from "./oauth2-config.ts";
import type { CookieSealer } from "./sealing.ts";

/** `flowId` is told where the sign-in is the browser's own: its cookies are of no more use. */
export type Callback =
  | { readonly ok: true; readonly code: string; readonly state: LoginState }
  | { readonly ok: false; readonly reason: string; readonly flowId?: string | undefined };

export interface CallbackContext {
  readonly cookies: Cookies;
  readonly sealer: CookieSealer;
  /** `scheme://authority` of the pages. */
  readonly origin: string;
}

/** `path` with its query. */
export function readCallback(
  path: string,
  { cookies, sealer, origin }: CallbackContext,
  { cookieNames, allowedRedirectDomains, isRedirectPath }: OAuth2Config,
): Callback {
  const mark = path.indexOf("?");
  const parameters = new URLSearchParams(mark < 0 ? "" : path.slice(mark + 1));
  const stateText = parameters.get("state");
  const state = stateText === null ? undefined : decodeState(stateText);
  const cookie = state && cookies.get(`${cookieNames.oauthNonce}.${state.flowId}`);
  const isBound = state !== undefined && isBoundToBrowser(state, cookie, sealer);
  const flowId = isBound ? state.flowId : undefined;
  const error = parameters.get("error");
  if (error !== null) {
    const known = /^[a-z_]{1,40}$/.test(error) ? error : "";
    return { ok: false, reason: `OAuth server returned an error: ${known}`, flowId };
  }
  const code = parameters.get("code");
  if (code === null || stateText === null) {
    return { ok: false, reason: "Code or state query param does not exist", flowId };
  }
  if (state === undefined) return { ok: false, reason: "State query param is not a valid JSON" };
  if (!isBound) return { ok: false, reason: "CSRF token validation failed" };
  if (!isAllowedReturn(state.url, origin, allowedRedirectDomains)) {
    return { ok: false, reason: "State url host is not in the allowed redirect domains", flowId };
  }
  // It would never end.
  const { pathname, search } = new URL(state.url);
  if (isRedirectPath(pathname + search)) {
    return { ok: false, reason: "State url query params matches the redirect path matcher", flowId };
  }
  return { ok: true, code, state };
}
