// RP-initiated logout (OpenID Connect RP-Initiated Logout 1.0): ends the sign-in here and leads back to a registered
// address. Without an ID token of this very session the owner is asked, so that no site can sign people out.
import { currentSession } from "../authorize/authorize.ts";
import { readCookie, setCookie } from "../http/cookies.ts";
import { isDocumentRequest } from "../http/fetch-metadata.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { found } from "../http/messages.ts";
import { csrfMatches, csrfToken } from "../http/csrf.ts";
import { forgedFormAnswer } from "../interaction/forged-form-answer.ts";
import { isIdToken } from "../keys/jwt.ts";
import { formTargets } from "../pages/form-targets.ts";
import { logoutPage } from "../pages/logout-page.ts";
import { messagePage, refusalPage } from "../pages/message-page.ts";
import { speechFor } from "../pages/speech.ts";
import { Parameters } from "../protocol/parameters.ts";
import { answerLocation, echoableState, redirectUriMatches } from "../protocol/redirect-uri.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { refuse } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import type { Client } from "../store/clients.ts";
import { findClient } from "../store/clients.ts";
import type { Session } from "../store/sessions.ts";
import { endSession } from "../store/sessions.ts";
import { findUser } from "../store/users.ts";

interface LogoutRequest {
  readonly parameters: Parameters;
  readonly client: Client | undefined;
  readonly returnTo: string | undefined;
  /** The session and subject that a verified id_token_hint names. */
  readonly hintedSession: string | undefined;
}

/** GET or POST /logout. */
export async function logout(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const parsed = await readRequest(server, request, request.method === "POST" ? request.body : request.query);
  if ("refusal" in parsed) return refusedLogout(server, request, parsed.refusal);
  const session = await currentSession(server, request);
  if (session === undefined) return signedOut(server, request, parsed);
  if (parsed.hintedSession === session.id) return endAndReturn(server, request, parsed, session);
  return ask(server, request, parsed, session);
}

/** POST /logout/confirm: the owner's answer. */
export async function confirmLogout(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const forged = forgedFormAnswer(server, request);
  if (forged !== undefined) return forged;
  const parsed = await readRequest(server, request, request.body);
  if ("refusal" in parsed) return refusedLogout(server, request, parsed.refusal);
  const session = await currentSession(server, request);
  if (session === undefined) return signedOut(server, request, parsed);
  const secret = readCookie(server.config, request.headers.cookie, "session") ?? "";
  if (!csrfMatches(parsed.parameters.get("csrf"), secret, "logout")) return ask(server, request, parsed, session);
  if (parsed.parameters.get("decision") === "out") return endAndReturn(server, request, parsed, session);
  const speech = speechFor(server, request);
  const { stayedTitle, stayed } = speech.texts.logout;
  return messagePage(server, speech, { status: 200, title: stayedTitle, text: stayed, way: "account" });
}

async function readRequest(
  server: ServerContext,
  request: EndpointRequest,
  text: string,
): Promise<LogoutRequest | { readonly refusal: Refusal }> {
  const parameters = Parameters.parse(text);
  if (!isDocumentRequest(request.headers))
    return { refusal: refuse("invalid_request", "signing out needs a window of its own") };
  if (parameters.repeated.size > 0)
    return { refusal: refuse("invalid_request", "a parameter was sent more than once") };
  const hint = parameters.get("id_token_hint");
  // An expired ID token is a fair hint (RP-Initiated Logout §2), one that we have not signed is not.
  const jwt = hint === undefined ? undefined : server.keys.verifyHint(hint);
  if (hint !== undefined && (jwt === undefined || !isIdToken(jwt)))
    return { refusal: refuse("invalid_request", "id_token_hint is not an ID token of this server") };
  const hintedClient = jwt === undefined ? undefined : String(jwt.claims["aud"]);
  const clientId = parameters.get("client_id") ?? hintedClient;
  if (hintedClient !== undefined && clientId !== hintedClient)
    return { refusal: refuse("invalid_request", "client_id is not the client of id_token_hint") };
  const client =
    clientId === undefined ? undefined : await server.database.read((reader) => findClient(reader, clientId));
  const returnTo = parameters.get("post_logout_redirect_uri");
  const isRegistered = client?.postLogoutRedirectUris.some((registered) =>
    redirectUriMatches(registered, returnTo ?? "", client.isPublic),
  );
  if (returnTo !== undefined && isRegistered !== true)
    return { refusal: refuse("invalid_request", "post_logout_redirect_uri is not registered for this client") };
  const hintedSession = jwt === undefined ? undefined : String(jwt.claims["sid"]);
  return { parameters, client, returnTo, hintedSession };
}

function refusedLogout(server: ServerContext, request: EndpointRequest, refusal: Refusal): Answer {
  const errorId = server.audit.refusal("logout refused", refusal, { address: request.address });
  server.metrics.refusals("logout", refusal.error).increment();
  return refusalPage(server, speechFor(server, request), refusal, errorId);
}

async function ask(
  server: ServerContext,
  request: EndpointRequest,
  logoutRequest: LogoutRequest,
  session: Session,
): Promise<Answer> {
  const secret = readCookie(server.config, request.headers.cookie, "session") ?? "";
  const user = await server.database.read((reader) => findUser(reader, session.userId));
  const repeated = ["id_token_hint", "client_id", "post_logout_redirect_uri", "state"] as const;
  return logoutPage(server, speechFor(server, request), {
    csrf: csrfToken(secret, "logout"),
    userName: user?.name ?? "",
    fields: repeated.flatMap((name) => {
      const value = logoutRequest.parameters.get(name);
      return value === undefined ? [] : [[name, value] as const];
    }),
    formTargets: logoutRequest.returnTo === undefined ? [] : formTargets(logoutRequest.returnTo, []),
  });
}

async function endAndReturn(
  server: ServerContext,
  request: EndpointRequest,
  logoutRequest: LogoutRequest,
  session: Session,
): Promise<Answer> {
  await server.database.transaction((transaction) => endSession(transaction, session.id, session.userId));
  server.audit.record({
    event: "signed out",
    userId: session.userId,
    clientId: logoutRequest.client?.id,
    address: request.address,
  });
  return signedOut(server, request, logoutRequest);
}

function signedOut(server: ServerContext, request: EndpointRequest, { returnTo, parameters }: LogoutRequest): Answer {
  const cookie = { "set-cookie": setCookie(server.config, "session", "", 0) };
  if (returnTo !== undefined) {
    const state = echoableState(parameters.raw("state"), parameters.get("state"));
    return found(state === undefined ? returnTo : answerLocation(returnTo, [], state), cookie);
  }
  const speech = speechFor(server, request);
  const { doneTitle, done } = speech.texts.logout;
  const answer = messagePage(server, speech, { status: 200, title: doneTitle, text: done, way: "signIn" });
  return { ...answer, headers: { ...answer.headers, ...cookie } };
}
