// An OAuth client on openid-client: it walks the authorization code grant step by step, shows what it got, refreshes it
// and signs out. Tokens stay in this program; the browser has a cookie that means nothing elsewhere.
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import * as openid from "openid-client";
import type { Handler } from "../serve.ts";
import { headersToForward, methodIs, pathOf, reasonOf, sendText } from "../serve.ts";
import { failurePage, signedInPage, signedOutPage } from "./pages.ts";

export interface ClientApplicationOptions {
  /** This application as browsers know it, such as `http://localhost:8080/client`. */
  readonly baseUrl: string;
  readonly issuer: string;
  /** Where this program reaches the issuer's host, such as `http://oauth2` inside the mesh. */
  readonly issuerOriginInside: string;
  readonly ordersUrl: string;
  readonly credentials: () => { readonly clientId: string; readonly clientSecret: string };
  /** Shown to people who have not signed in yet. */
  readonly hint?: string;
}

const scope = "openid profile offline_access orders.read";
const sessionHours = 8;
const maxSessions = 1000;
const cookieName = "shop_client";
/** Of the visit that is served: what its calls to others carry on, those of the library too. */
const carriedHeaders = new AsyncLocalStorage<Readonly<Record<string, string>>>();

/** Between the redirect to the authorization server and the way back. */
interface Attempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

interface Session {
  attempt: Attempt | undefined;
  tokens: (openid.TokenEndpointResponse & openid.TokenEndpointResponseHelpers) | undefined;
  name: string;
  refreshes: number;
}

export function createClientApplication(options: ClientApplicationOptions): Handler {
  const sessions = new Map<string, Session>();
  const basePath = new URL(options.baseUrl).pathname;
  let discovered: Promise<openid.Configuration> | undefined;

  function configuration(): Promise<openid.Configuration> {
    discovered ??= discover(options).catch((error: unknown) => {
      // The authorization server may still be starting: the next visitor tries again.
      discovered = undefined;
      throw error;
    });
    return discovered;
  }

  const routes: Readonly<Record<string, (visit: Visit) => Promise<void>>> = {
    "": (visit) => showHome(visit, options),
    "/login": async (visit) => beginLogin(visit, await configuration(), options),
    "/callback": async (visit) => finishLogin(visit, await configuration(), options),
    "/refresh": async (visit) => refresh(visit, await configuration(), options),
    "/logout": async (visit) => logout(visit, await configuration(), options, sessions),
  };

  return async (request, response) => {
    const path = pathOf(request) ?? "";
    if (path === "/health") return sendText(response, 200, "ok\n");
    const route = path.startsWith(basePath) ? routes[path.slice(basePath.length)] : undefined;
    if (route === undefined) return sendPage(response, 404, failurePage(basePath, "There is no such page."));
    const changes = path.endsWith("/refresh") || path.endsWith("/logout");
    if (!methodIs(request, response, changes ? "POST" : "GET")) return;
    const visit = openVisit(request, response, sessions, basePath);
    try {
      await carriedHeaders.run(headersToForward(request), () => route(visit));
    } catch (error) {
      process.stderr.write(`${request.method} ${path}: ${reasonOf(error)}\n`);
      sendPage(response, 502, failurePage(basePath, wordsFor(error)));
    }
  };
}

interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly sessionId: string;
  readonly session: Session;
  readonly basePath: string;
}

function openVisit(
  request: IncomingMessage,
  response: ServerResponse,
  sessions: Map<string, Session>,
  basePath: string,
): Visit {
  const known = new RegExp(`(?:^|; *)${cookieName}=([\\w-]{43})`).exec(request.headers.cookie ?? "")?.[1];
  const existing = known === undefined ? undefined : sessions.get(known);
  const sessionId = existing === undefined ? randomBytes(32).toString("base64url") : known!;
  const session: Session = existing ?? { attempt: undefined, tokens: undefined, name: "", refreshes: 0 };
  if (existing === undefined) {
    sessions.set(sessionId, session);
    if (sessions.size > maxSessions) sessions.delete(sessions.keys().next().value!);
    const life = sessionHours * 3600;
    response.setHeader(
      "set-cookie",
      `${cookieName}=${sessionId}; Path=${basePath}; Max-Age=${life}; HttpOnly; SameSite=Lax`,
    );
  }
  return { request, response, sessionId, session, basePath };
}

/** Discovery and every later call go to the workload inside the mesh; what they say is the public issuer. */
async function discover(options: ClientApplicationOptions): Promise<openid.Configuration> {
  const { clientId, clientSecret } = options.credentials();
  const publicOrigin = new URL(options.issuer).origin;
  const inside: openid.CustomFetch = (url, init) =>
    fetch(url.replace(publicOrigin, options.issuerOriginInside), {
      ...(init as RequestInit),
      headers: { ...carriedHeaders.getStore(), ...init.headers },
    });
  return openid.discovery(new URL(options.issuer), clientId, clientSecret, openid.ClientSecretBasic(clientSecret), {
    // http is for one machine; the library insists on https otherwise.
    execute: publicOrigin.startsWith("http:") ? [openid.allowInsecureRequests] : [],
    [openid.customFetch]: inside,
  });
}

/** A sign-in ends at the registered redirect URI: whoever came by another address would be lost there. */
function hintFor(host: string | undefined, { baseUrl, hint = "" }: ClientApplicationOptions): string {
  if (host === new URL(baseUrl).host) return hint;
  return `This application is registered as ${baseUrl}, and signing in leads there, not to ${host ?? "here"}.`;
}

async function showHome(visit: Visit, options: ClientApplicationOptions): Promise<void> {
  const { session, response, basePath } = visit;
  if (session.tokens === undefined) {
    sendPage(response, 200, signedOutPage(basePath, hintFor(visit.request.headers.host, options)));
    return;
  }
  const answer = await fetch(options.ordersUrl, {
    headers: { ...carriedHeaders.getStore(), authorization: `Bearer ${session.tokens.access_token}` },
  });
  const body = (await answer.json()) as {
    orders?: readonly { id: number; item: string; price: string }[];
    error?: string;
  };
  const seconds = session.tokens.expiresIn();
  const shown = {
    name: session.name,
    scope: session.tokens.scope ?? scope,
    expiresInSeconds: seconds ?? 0,
    refreshes: session.refreshes,
    ordersStatus: answer.status,
    orders: body.orders ?? [],
  };
  sendPage(response, 200, signedInPage(basePath, shown));
}

/** Steps 1 and 2 of the grant: the browser goes to the authorization endpoint, where the owner is asked. */
async function beginLogin(
  visit: Visit,
  config: openid.Configuration,
  options: ClientApplicationOptions,
): Promise<void> {
  const attempt = {
    state: openid.randomState(),
    nonce: openid.randomNonce(),
    verifier: openid.randomPKCECodeVerifier(),
  };
  visit.session.attempt = attempt;
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: `${options.baseUrl}/callback`,
    scope,
    state: attempt.state,
    nonce: attempt.nonce,
    code_challenge: await openid.calculatePKCECodeChallenge(attempt.verifier),
    code_challenge_method: "S256",
  });
  redirect(visit.response, url.href);
}

/** Steps 3 and 4: the code has come back through the browser, and is exchanged for tokens behind its back. */
async function finishLogin(
  visit: Visit,
  config: openid.Configuration,
  options: ClientApplicationOptions,
): Promise<void> {
  const { session, request, response } = visit;
  const { attempt } = session;
  // Used once, whatever comes of it.
  session.attempt = undefined;
  if (attempt === undefined) return redirect(response, options.baseUrl);
  const answer = new URL(`${options.baseUrl}/callback${new URL(request.url ?? "/", "http://client").search}`);
  const tokens = await openid.authorizationCodeGrant(config, answer, {
    pkceCodeVerifier: attempt.verifier,
    expectedState: attempt.state,
    expectedNonce: attempt.nonce,
    idTokenExpected: true,
  });
  const subject = tokens.claims()!.sub;
  const user = await openid.fetchUserInfo(config, tokens.access_token, subject);
  session.tokens = tokens;
  session.name = user.name ?? subject;
  session.refreshes = 0;
  redirect(response, options.baseUrl);
}

async function refresh(visit: Visit, config: openid.Configuration, options: ClientApplicationOptions): Promise<void> {
  const { session, response } = visit;
  const refreshToken = session.tokens?.refresh_token;
  if (session.tokens !== undefined && refreshToken !== undefined) {
    try {
      session.tokens = await openid.refreshTokenGrant(config, refreshToken);
      session.refreshes += 1;
    } catch (error) {
      // The owner has taken the access back: begin anew.
      if (!(error instanceof openid.ResponseBodyError) || error.error !== "invalid_grant") throw error;
      session.tokens = undefined;
    }
  }
  redirect(response, options.baseUrl);
}

/** Gives the tokens back, forgets them, and ends the sign-in at the authorization server too. */
async function logout(
  visit: Visit,
  config: openid.Configuration,
  options: ClientApplicationOptions,
  sessions: Map<string, Session>,
): Promise<void> {
  const { tokens } = visit.session;
  sessions.delete(visit.sessionId);
  if (tokens?.refresh_token !== undefined) await openid.tokenRevocation(config, tokens.refresh_token);
  if (tokens?.id_token === undefined) return redirect(visit.response, options.baseUrl);
  const parameters = { id_token_hint: tokens.id_token, post_logout_redirect_uri: options.baseUrl };
  redirect(visit.response, openid.buildEndSessionUrl(config, parameters).href);
}

function wordsFor(error: unknown): string {
  if (error instanceof openid.AuthorizationResponseError) {
    if (error.error === "access_denied") return "You did not allow this application to see your orders.";
    return `The authorization server refused: ${error.error_description ?? error.error}`;
  }
  if (error instanceof openid.ResponseBodyError)
    return `The authorization server refused: ${error.error_description ?? error.error}`;
  return "The authorization server or the orders service cannot be reached.";
}

function redirect(response: ServerResponse, location: string): void {
  response.writeHead(303, { location, "cache-control": "no-store" });
  response.end();
}

function sendPage(response: ServerResponse, status: number, html: string): void {
  const bytes = Buffer.from(html);
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-length": bytes.length,
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
  });
  response.end(bytes);
}
