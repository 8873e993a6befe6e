// A gateway that signs browsers in: without a session it sends them to the authorization server, takes the code that
// they come back with to the token endpoint, keeps the tokens in the browser's sealed cookies and passes the access
// token on (extensions.filters.http.oauth2.v3.OAuth2; OpenID Connect Core §3.1, RFC 7636, RFC 9700).
import type { Logger } from "@tulle/telemetry";
import { type FilterStatus, type HttpFilter, type HttpStream, StreamSlot } from "../../../http/filter.ts";
import { HeaderMap } from "../../../http/header-map.ts";
import type { ResponseHead } from "../../../http/message.ts";
import { deleteCookieText, readCookies, removeCookies, setCookieText } from "./cookies.ts";
import { faultOfIdToken } from "./id-token.ts";
import { type LoginState, encodeState, isAllowedDomain } from "./login-state.ts";
import type { OAuth2Config } from "./oauth2-config.ts";
import type { OAuth2Stats } from "./oauth2-stats.ts";
import { readCallback } from "./read-callback.ts";
import { RefreshFlights } from "./refresh-flights.ts";
import { CookieSealer, codeChallenge, csrfTokenOf, newCodeVerifier, newFlowId, nonceOf } from "./sealing.ts";
import {
  type Cookies,
  type Session,
  endedSessionCookies,
  isFlowCookie,
  isSessionCookie,
  readSession,
  sealingUse,
  sessionCookies,
} from "./session.ts";
import { exchangeCode, type TokenResult, type Tokens } from "./token-client.ts";

export interface OAuth2FilterOptions {
  readonly name: string;
  readonly config: OAuth2Config;
  readonly stats: OAuth2Stats;
  readonly log: Logger;
}

/** Sign-ins that one browser may have under way; the cookies of further ones would fill its request heads. */
const maxFlowsPerBrowser = 8;

const statusHeader = "x-envoy-oauth-status";
const reasonHeader = "x-envoy-oauth-failure-reason";
const unauthorizedBody = "OAuth flow failed.";

/** One request as the filter sees it. */
interface Visit {
  readonly stream: HttpStream;
  readonly sealer: CookieSealer;
  readonly cookies: Cookies;
  /** `scheme://authority` of the pages. */
  readonly origin: string;
  /** Whom the cookies belong to. */
  readonly site: string;
  readonly nowSeconds: number;
}

/** What the filter still has to do for a stream. */
interface Pending {
  /** Leaves what is awaited. */
  cancel?: (() => void) | undefined;
  /** Go out with the response. */
  responseCookies?: readonly string[];
}

export class OAuth2Filter implements HttpFilter {
  readonly name: string;
  readonly #config: OAuth2Config;
  readonly #stats: OAuth2Stats;
  readonly #log: Logger;
  readonly #flights: RefreshFlights;
  /** Few streams wait or get cookies; the others pay nothing. */
  readonly #pending = new StreamSlot<Pending>();
  #sealer: CookieSealer | undefined = undefined;

  constructor({ name, config, stats, log }: OAuth2FilterOptions) {
    this.name = name;
    this.#config = config;
    this.#stats = stats;
    this.#log = log;
    this.#flights = new RefreshFlights(config);
  }

  onRequestHead(stream: HttpStream): FilterStatus {
    const config = this.#config;
    const { headers } = stream.request;
    // Only the filter itself may say these.
    headers.remove(statusHeader);
    headers.remove(reasonHeader);
    if (config.passesThrough(stream.request)) {
      this.#stats.passthrough.increment();
      return "continue";
    }
    const sealer = this.#currentSealer();
    const needsClientSecret = config.authentication !== "tls_client_auth";
    if (sealer === undefined || (needsClientSecret && config.clientSecret() === undefined)) {
      this.#stats.failure.increment();
      stream.sendLocalReply({ status: 503, body: "Service Unavailable", details: "OAuth2_secrets_are_not_ready" });
      return "stop";
    }
    if (!config.preserveAuthorizationHeader) headers.remove("authorization");
    if (config.idTokenHeader !== undefined) headers.remove(config.idTokenHeader);
    const visit = this.#visit(stream, sealer);
    const { path } = stream.request;
    const session = readSession(config, visit.cookies, visit.site, sealer, visit.nowSeconds);
    if (config.isSignoutPath(path)) return this.#signOut(visit, session);
    if (config.isRedirectPath(path)) return this.#onCallback(visit, session);
    if (session.isValid) {
      this.#stats.success.increment();
      this.#letPass(visit, session);
      return "continue";
    }
    if (config.usesRefreshToken && session.refreshToken !== "") return this.#refresh(visit, session);
    return this.#withoutSession(visit, "not signed in");
  }

  onResponseHead(stream: HttpStream, response: ResponseHead): void {
    const cookies = this.#pending.get(stream)?.responseCookies;
    if (cookies === undefined) return;
    for (const cookie of cookies) response.headers.append("set-cookie", cookie);
    // Whoever keeps the answer for others would keep the session with it.
    if (!response.headers.has("cache-control")) response.headers.set("cache-control", "private");
  }

  onComplete(stream: HttpStream): void {
    const pending = this.#pending.get(stream);
    if (pending === undefined) return;
    pending.cancel?.();
    this.#pending.delete(stream);
  }

  /** Another one once the secret has changed: then every session ends. */
  #currentSealer(): CookieSealer | undefined {
    const secret = this.#config.cookieSecret();
    if (secret === undefined || secret.length === 0) return undefined;
    if (this.#sealer === undefined || this.#sealer.secret !== secret) this.#sealer = new CookieSealer(secret);
    return this.#sealer;
  }

  #visit(stream: HttpStream, sealer: CookieSealer): Visit {
    const { request, info } = stream;
    const { originalRequestUri, cookieDomain } = this.#config;
    return {
      stream,
      sealer,
      cookies: readCookies(request.headers),
      origin: originalRequestUri?.(info, request, undefined) ?? `${request.scheme}://${request.authority}`,
      site: cookieDomain === "" ? request.authority : cookieDomain,
      nowSeconds: Math.floor(stream.dataPath.clock.wallMs() / 1000),
    };
  }

  /** The application gets the access token and no cookie of ours. */
  #letPass({ stream }: Visit, tokens: { readonly accessToken: string; readonly idToken: string }): void {
    const config = this.#config;
    const { headers } = stream.request;
    removeCookies(headers, (name) => isSessionCookie(config, name) || isFlowCookie(config, name));
    if (config.forwardBearerToken && tokens.accessToken !== "") {
      headers.set("authorization", `Bearer ${tokens.accessToken}`);
    }
    if (config.idTokenHeader !== undefined && tokens.idToken !== "") headers.set(config.idTokenHeader, tokens.idToken);
  }

  #withoutSession(visit: Visit, reason: string): FilterStatus {
    const { request } = visit.stream;
    if (this.#config.allowsFailure(request)) {
      this.#passAsFailed(visit, reason);
      return "continue";
    }
    if (this.#config.deniesRedirect(request)) {
      return this.#refuse(visit, `Unauthorized, and redirecting to OAuth server is not allowed: ${reason}`);
    }
    return this.#sendToSignIn(visit);
  }

  #passAsFailed(visit: Visit, reason: string): void {
    this.#stats.allowFailed.increment();
    const config = this.#config;
    const { headers } = visit.stream.request;
    removeCookies(headers, (name) => isSessionCookie(config, name) || isFlowCookie(config, name));
    headers.set(statusHeader, "failed");
    headers.set(reasonHeader, reason);
  }

  #sendToSignIn(visit: Visit): FilterStatus {
    const config = this.#config;
    const { stream, sealer, origin, cookies } = visit;
    const { request, info } = stream;
    const redirectUri = config.redirectUri(info, request, undefined);
    for (const [what, url] of [
      ["authority or original_request_uri", origin],
      ["redirect_uri", redirectUri],
    ] as const) {
      const parsed = URL.parse(url);
      const domains = config.allowedRedirectDomains;
      if (parsed === null || (domains.length > 0 && !isAllowedDomain(parsed.hostname, domains))) {
        return this.#refuse(visit, `${what} failed domain allow-list validation`);
      }
    }
    const flowId = newFlowId();
    const csrfToken = csrfTokenOf(flowId, sealer);
    const verifier = newCodeVerifier();
    const parameters = new URLSearchParams(config.authorizationParameters.map(([name, value]) => [name, value]));
    parameters.set("state", encodeState({ url: origin + request.path, csrfToken, flowId }));
    parameters.set("redirect_uri", redirectUri);
    parameters.set("code_challenge", codeChallenge(verifier));
    parameters.set("code_challenge_method", "S256");
    if (config.isOpenId) parameters.set("nonce", nonceOf(csrfToken, sealer));
    const headers = new HeaderMap();
    headers.append("location", `${config.authorizationEndpoint}?${parameters.toString()}`);
    const { oauthNonce, codeVerifier } = config.cookieNames;
    const { oauthNonce: nonceSettings, codeVerifier: verifierSettings } = config.cookieSettings;
    const verifierName = `${codeVerifier}.${flowId}`;
    const sealedVerifier = sealer.seal(verifier, sealingUse(verifierName, visit.site));
    const { csrfTokenExpiresSeconds, codeVerifierExpiresSeconds, cookieDomain } = config;
    const nonceCookie = setCookieText(
      `${oauthNonce}.${flowId}`,
      csrfToken,
      csrfTokenExpiresSeconds,
      nonceSettings,
      cookieDomain,
    );
    headers.append("set-cookie", nonceCookie);
    const verifierCookie = setCookieText(
      verifierName,
      sealedVerifier,
      codeVerifierExpiresSeconds,
      verifierSettings,
      cookieDomain,
    );
    headers.append("set-cookie", verifierCookie);
    for (const name of surplusFlows(config, cookies)) this.#deleteFlow(headers, name);
    this.#stats.unauthorized.increment();
    this.#redirect(stream, headers, "oauth.missing_credentials");
    return "stop";
  }

  #onCallback(visit: Visit, session: Session): FilterStatus {
    if (session.isValid) this.#stats.success.increment();
    const callback = readCallback(visit.stream.request.path, visit, this.#config);
    if (!callback.ok) return this.#refuse(visit, callback.reason, callback.flowId);
    const { state, code } = callback;
    if (session.isValid) {
      // Another tab has signed in meanwhile: this one needs no tokens of its own.
      const headers = new HeaderMap(["location", state.url]);
      this.#deleteFlow(headers, state.flowId);
      this.#redirect(visit.stream, headers, "oauth.race_redirect");
      return "stop";
    }
    const { stream, sealer, cookies, site } = visit;
    const verifierName = `${this.#config.cookieNames.codeVerifier}.${state.flowId}`;
    const sealed = cookies.get(verifierName);
    if (sealed === undefined) {
      return this.#refuse(visit, "Code verifier cookie is missing in the request", state.flowId);
    }
    const codeVerifier = sealer.open(sealed, sealingUse(verifierName, site));
    if (codeVerifier === undefined) return this.#refuse(visit, "Failed to decrypt code verifier", state.flowId);
    const redirectUri = this.#config.redirectUri(stream.info, stream.request, undefined);
    const call = exchangeCode(this.#config, { code, redirectUri, codeVerifier }, stream.dataPath, (result) => {
      this.#pending.delete(stream);
      this.#onCodeExchanged(visit, state, result);
    });
    this.#pending.set(stream, { cancel: () => call.cancel() });
    return "stop";
  }

  #onCodeExchanged(visit: Visit, state: LoginState, result: TokenResult): void {
    if (!result.ok) {
      this.#refuse(visit, result.reason, state.flowId);
      return;
    }
    const { stream, sealer, cookies, site, nowSeconds } = visit;
    const { tokens } = result;
    const wrong = faultOfIdToken(this.#config, tokens.idToken, nonceOf(state.csrfToken, sealer), nowSeconds);
    if (wrong !== undefined) {
      this.#refuse(visit, wrong, state.flowId);
      return;
    }
    const setCookies = sessionCookies(this.#config, tokens, cookies, site, sealer, nowSeconds);
    if (setCookies === undefined) {
      this.#refuse(visit, "The tokens do not fit into cookies", state.flowId);
      return;
    }
    const headers = new HeaderMap(["location", state.url]);
    for (const cookie of setCookies) headers.append("set-cookie", cookie);
    this.#deleteFlow(headers, state.flowId);
    this.#stats.success.increment();
    this.#redirect(stream, headers, "oauth.logged_in");
  }

  #refresh(visit: Visit, session: Session): FilterStatus {
    const { stream } = visit;
    const cancel = this.#flights.join(session.refreshToken, stream.dataPath, (result) => {
      this.#pending.delete(stream);
      if (result.ok && this.#continueRefreshed(visit, session, result.tokens)) return;
      this.#stats.refreshFailure.increment();
      if (!result.ok) this.#log.debug("refresh failed", { reason: result.reason });
      const status = this.#withoutSession(visit, "Failed to refresh the access token");
      if (status === "continue") stream.continueRequest();
    });
    this.#pending.set(stream, { cancel });
    return "stop";
  }

  /** False when the tokens cannot be kept. */
  #continueRefreshed(visit: Visit, session: Session, refreshed: Tokens): boolean {
    const { stream, sealer, cookies, site, nowSeconds } = visit;
    // A provider that does not rotate sends no new refresh token, and may send no new ID token: the old ones go on.
    const tokens: Tokens = {
      ...refreshed,
      refreshToken: refreshed.refreshToken === "" ? session.refreshToken : refreshed.refreshToken,
      idToken: refreshed.idToken === "" ? session.idToken : refreshed.idToken,
    };
    const responseCookies = sessionCookies(this.#config, tokens, cookies, site, sealer, nowSeconds);
    if (responseCookies === undefined) return false;
    this.#stats.refreshSuccess.increment();
    this.#stats.success.increment();
    this.#pending.set(stream, { responseCookies });
    this.#letPass(visit, {
      accessToken: this.#config.keepsAccessToken ? tokens.accessToken : "",
      idToken: this.#config.keepsIdToken ? tokens.idToken : "",
    });
    stream.continueRequest();
    return true;
  }

  #signOut({ stream, origin, cookies }: Visit, session: Session): FilterStatus {
    const { endSessionEndpoint, clientId, postLogoutRedirectUri } = this.#config;
    const headers = new HeaderMap();
    for (const cookie of endedSessionCookies(this.#config, cookies)) headers.append("set-cookie", cookie);
    const home = `${origin}/`;
    let location = home;
    if (endSessionEndpoint !== "") {
      // OpenID Connect RP-Initiated Logout §2.
      const parameters = new URLSearchParams();
      if (session.idToken !== "") parameters.set("id_token_hint", session.idToken);
      parameters.set("client_id", clientId);
      if (postLogoutRedirectUri !== "none") {
        const after = postLogoutRedirectUri?.(stream.info, stream.request, undefined) ?? home;
        parameters.set("post_logout_redirect_uri", after);
      }
      location = `${endSessionEndpoint}${endSessionEndpoint.includes("?") ? "&" : "?"}${parameters.toString()}`;
    }
    headers.append("location", location);
    this.#redirect(stream, headers, "oauth.sign_out");
    return "stop";
  }

  /** Nothing of what is refused stands in the details: state and code are the browser's secrets. */
  #refuse({ stream }: Visit, reason: string, flowId?: string): FilterStatus {
    this.#stats.failure.increment();
    this.#log.warning("responding with 401 Unauthorized", { reason });
    const headers = new HeaderMap(["cache-control", "no-store"]);
    if (flowId !== undefined) this.#deleteFlow(headers, flowId);
    stream.sendLocalReply({ status: 401, body: unauthorizedBody, details: reason.replaceAll(/\s/g, "_"), headers });
    return "stop";
  }

  #deleteFlow(headers: HeaderMap, flowId: string): void {
    const { cookieNames: names, cookieSettings, cookieDomain } = this.#config;
    const nonce = deleteCookieText(`${names.oauthNonce}.${flowId}`, cookieSettings.oauthNonce, cookieDomain);
    const verifier = deleteCookieText(`${names.codeVerifier}.${flowId}`, cookieSettings.codeVerifier, cookieDomain);
    headers.append("set-cookie", nonce);
    headers.append("set-cookie", verifier);
  }

  /** Where a browser goes depends on its cookies: no cache may repeat it to others. */
  #redirect(stream: HttpStream, headers: HeaderMap, details: string): void {
    headers.set("cache-control", "no-store");
    stream.sendLocalReply({ status: 302, body: "", details, headers });
  }
}

/**
 * Ids of the sign-ins that a browser with too many of them loses; the first in its list are the oldest (RFC 6265 §5.4).
 */
function surplusFlows({ cookieNames }: OAuth2Config, cookies: Cookies): readonly string[] {
  const prefix = `${cookieNames.oauthNonce}.`;
  const flows = [...cookies.keys()].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  const valid = flows.filter((flowId) => /^[0-9a-f]{1,64}$/.test(flowId));
  return valid.slice(0, Math.max(0, valid.length - maxFlowsPerBrowser + 1));
}
