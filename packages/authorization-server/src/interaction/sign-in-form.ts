// GET and POST /sign-in: who signs in for an authorization request, or on the way to the owner's own page. Only who has
// signed in leaves something behind.
import { addressOf, currentSession, situationOf } from "../authorize/authorize.ts";
import type { Situation } from "../authorize/situation.ts";
import { readCookie, setCookie } from "../http/cookies.ts";
import { isDocumentRequest } from "../http/fetch-metadata.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { seeOther } from "../http/messages.ts";
import { refusalPage } from "../pages/message-page.ts";
import { duration, fillText, inSameLanguage, speechFor } from "../pages/speech.ts";
import { Parameters } from "../protocol/parameters.ts";
import type { Refusal } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import type { Transaction } from "../store/database.ts";
import { createInteraction } from "../store/interactions.ts";
import type { NewSession } from "../store/sessions.ts";
import { createSession, endSessionBySecret, renewSession } from "../store/sessions.ts";
import { csrfMatches } from "../http/csrf.ts";
import { expiredPage } from "../pages/expired-page.ts";
import { forgedFormAnswer } from "./forged-form-answer.ts";
import { loginStep, shownOnLoginPage } from "../authorize/login-step.ts";
import { signIn } from "./sign-in.ts";

/** What somebody signs in for: undefined is the owner's own page. */
type Purpose =
  | { readonly situation: Situation | undefined }
  | { readonly refusal: Refusal; clientId: string | undefined };

async function purposeOf(server: ServerContext, request: EndpointRequest, parameters: string): Promise<Purpose> {
  if (parameters === "") return { situation: undefined };
  const step = { request, parameters, interaction: undefined, allowed: undefined };
  const address = await addressOf(server, step);
  if ("refusal" in address) return address;
  return { situation: await situationOf(server, step, address.draft, await currentSession(server, request)) };
}

function refusedPurpose(
  server: ServerContext,
  request: EndpointRequest,
  { refusal, clientId }: { readonly refusal: Refusal; readonly clientId: string | undefined },
): Answer {
  const who = { clientId, address: request.address };
  return refusalPage(
    server,
    speechFor(server, request),
    refusal,
    server.audit.refusal("authorize refused with a page", refusal, who),
  );
}

/** The form even for somebody who is signed in, to change the account. */
export async function showSignIn(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  if (!isDocumentRequest(request.headers)) return expiredPage(server, request);
  // On the way to the owner's own page the address says nothing but the language.
  const parameters = /^ui_locales=[^&]*$/.test(request.query) ? "" : request.query;
  const purpose = await purposeOf(server, request, parameters);
  if ("refusal" in purpose) return refusedPurpose(server, request, purpose);
  return loginStep(server, request, { parameters, situation: purpose.situation });
}

export async function submitSignIn(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const forged = forgedFormAnswer(server, request);
  if (forged !== undefined) return forged;
  const form = Parameters.parse(request.body);
  const parameters = form.get("request") ?? "";
  const browserSecret = readCookie(server.config, request.headers.cookie, "browser");
  if (browserSecret === undefined) return expiredPage(server, request);
  const purpose = await purposeOf(server, request, parameters);
  if ("refusal" in purpose) return refusedPurpose(server, request, purpose);
  const { texts } = speechFor(server, request);
  const words = texts.login;
  const waiting = (pattern: string, seconds: number): string => fillText(pattern, { wait: duration(texts, seconds) });
  const username = form.get("username") ?? "";
  const password = form.get("password") ?? "";
  const again = (problem: string, status: number, retryAfterSeconds?: number): Promise<Answer> => {
    const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    return loginStep(server, request, { ...purpose, parameters, problem, username, status, ...wait });
  };
  if (!csrfMatches(form.get("csrf"), browserSecret, ...shownOnLoginPage(parameters))) return again(words.reloaded, 403);
  if (username === "" || password === "") return again(words.missing, 400);
  const result = await signIn(server, { username, password, request });
  switch (result.outcome) {
    case "wrong":
      return again(words.wrong, 400);
    case "busy":
      return again(waiting(words.busy, result.retryAfterSeconds), 503, result.retryAfterSeconds);
    case "throttled":
      return again(waiting(words.throttled, result.retryAfterSeconds), 429, result.retryAfterSeconds);
    case "success":
      return beginSession(server, request, {
        parameters,
        browserSecret,
        userId: result.user.id,
        cookie: result.deviceCookie,
      });
    default:
      throw new Error(`no such outcome: ${String(result satisfies never)}`);
  }
}

interface SignedIn {
  readonly parameters: string;
  readonly browserSecret: string;
  readonly userId: string;
  /** By which this browser is known from now on. */
  readonly cookie: string;
}

async function beginSession(
  server: ServerContext,
  request: EndpointRequest,
  { parameters, browserSecret, userId, cookie }: SignedIn,
): Promise<Answer> {
  const { config } = server;
  const before = readCookie(config, request.headers.cookie, "session");
  const { secret, interaction } = await server.database.transaction(async (transaction) => {
    const begun = {
      userId,
      lifetimeMs: config.lifetimes.sessionMs,
      userAgent: request.headers["user-agent"] ?? "",
      address: request.address,
    };
    const session = await nextSession(transaction, before, begun, config.lifetimes.sessionIdleMs);
    if (parameters === "") return { secret: session.secret, interaction: undefined };
    const lifetimeMs = config.lifetimes.interactionMs;
    const wanted = { parameters, browserSecret, userId, sessionId: session.id, lifetimeMs };
    return { secret: session.secret, interaction: await createInteraction(transaction, wanted) };
  });
  const next = interaction === undefined ? "/account" : `/interaction/${interaction.id}`;
  return seeOther(inSameLanguage(config.issuer + next, speechFor(server, request)), {
    "set-cookie": [setCookie(config, "session", secret, config.lifetimes.sessionMs), cookie],
  });
}

/** A new secret at each sign-in, so that a planted cookie is worth nothing. Somebody else's session ends with it. */
async function nextSession(
  transaction: Transaction,
  before: string | undefined,
  wanted: NewSession,
  idleMs: number,
): Promise<{ readonly id: string; readonly secret: string }> {
  if (before !== undefined) {
    const renewed = await renewSession(transaction, before, wanted, idleMs);
    if (renewed !== undefined) return renewed;
    await endSessionBySecret(transaction, before);
  }
  return createSession(transaction, wanted);
}
