// The pages between a request and its answer: showing the step that is due, signing in, and consenting. A step is always
// worked out anew from the stored request and the present state; a page carries no state of its own.
import type { AuthorizationStep, Situation } from "../authorize/situation.ts";
import { addressOf, answerAuthorization, currentSession, situationOf } from "../authorize/authorize.ts";
import { refuseClient } from "../authorize/client-answer.ts";
import { readCookie, setCookie } from "../http/cookies.ts";
import { isDocumentRequest, isOwnForm } from "../http/fetch-metadata.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { isForm, seeOther } from "../http/messages.ts";
import { messagePage } from "../pages/message-page.ts";
import { textsFor } from "../pages/page.ts";
import { Parameters } from "../protocol/parameters.ts";
import { refuse } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import type { Interaction } from "../store/interactions.ts";
import { findInteraction, finishInteraction, rememberSignIn } from "../store/interactions.ts";
import { createSession, endSessionBySecret } from "../store/sessions.ts";
import { consentStep, shownOnConsentPage } from "./consent-step.ts";
import { csrfMatches } from "./csrf.ts";
import { expiredPage } from "./expired-page.ts";
import { loginStep } from "./login-step.ts";
import { signIn } from "./sign-in.ts";

interface OwnInteraction {
  readonly interaction: Interaction;
  readonly browserSecret: string;
}

async function ownInteraction(
  server: ServerContext,
  request: EndpointRequest,
  id: string,
): Promise<OwnInteraction | undefined> {
  const browserSecret = readCookie(server.config, request.headers.cookie, "browser");
  if (browserSecret === undefined) return undefined;
  const interaction = await server.database.read((reader) => findInteraction(reader, id, browserSecret));
  return interaction === undefined ? undefined : { interaction, browserSecret };
}

function stepOf(request: EndpointRequest, interaction: Interaction, consentGiven: boolean): AuthorizationStep {
  return { request, parameters: interaction.parameters, interaction, consentGiven };
}

/** A page that says that the form was not ours, or undefined when it was. */
export function forgedFormAnswer(server: ServerContext, request: EndpointRequest): Answer | undefined {
  const origin = new URL(server.config.issuer).origin;
  if (isDocumentRequest(request.headers) && isOwnForm(request.headers, origin) && isForm(request)) return undefined;
  const refusal = refuse("invalid_request", "a form that did not come from our pages", request.headers.origin);
  const errorId = server.audit.refusal("form refused", refusal, { address: request.address });
  const texts = textsFor(server).error;
  return messagePage(server, { status: 403, title: texts.forgedTitle, text: texts.forged, errorId });
}

/** GET /interaction/ID: whatever is due now. */
export async function showInteraction(server: ServerContext, request: EndpointRequest, id: string): Promise<Answer> {
  const own = await ownInteraction(server, request, id);
  if (own === undefined) return expiredPage(server);
  if (own.interaction.purpose === "authorize") {
    return answerAuthorization(server, stepOf(request, own.interaction, false));
  }
  if (!isDocumentRequest(request.headers)) return expiredPage(server);
  const session = await currentSession(server, request);
  if (session === undefined) return loginStep(server, request, own.interaction, {});
  await server.database.transaction((transaction) => finishInteraction(transaction, id));
  return seeOther(`${server.config.issuer}/account`);
}

/** What the sign-in page needs to know of the request; undefined when the request itself is beyond repair. */
async function situationFor(
  server: ServerContext,
  request: EndpointRequest,
  interaction: Interaction,
): Promise<Situation | undefined> {
  if (interaction.purpose === "account") return undefined;
  const step = stepOf(request, interaction, false);
  const address = await addressOf(server, step);
  if ("refusal" in address) return undefined;
  return situationOf(server, step, address.draft, await currentSession(server, request));
}

/** GET /interaction/ID/login: the sign-in form even for somebody who is signed in, to change the account. */
export async function showLogin(server: ServerContext, request: EndpointRequest, id: string): Promise<Answer> {
  const own = await ownInteraction(server, request, id);
  if (own === undefined || !isDocumentRequest(request.headers)) return expiredPage(server);
  const situation = await situationFor(server, request, own.interaction);
  return loginStep(server, request, own.interaction, { situation, username: "" });
}

/** POST /interaction/ID/login. */
export async function submitLogin(server: ServerContext, request: EndpointRequest, id: string): Promise<Answer> {
  const forged = forgedFormAnswer(server, request);
  if (forged !== undefined) return forged;
  const own = await ownInteraction(server, request, id);
  if (own === undefined) return expiredPage(server);
  const form = Parameters.parse(request.body);
  const texts = textsFor(server).login;
  const username = form.get("username") ?? "";
  const password = form.get("password") ?? "";
  const again = async (problem: string, status: number, retryAfterSeconds?: number): Promise<Answer> => {
    const situation = await situationFor(server, request, own.interaction);
    const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    return loginStep(server, request, own.interaction, { situation, problem, username, status, ...wait });
  };
  if (!csrfMatches(form.get("csrf"), own.browserSecret, "login", id)) return again(texts.reloaded, 403);
  if (username === "" || password === "") return again(texts.missing, 400);
  const result = await signIn(server, { username, password, address: request.address });
  switch (result.outcome) {
    case "wrong":
      return again(texts.wrong, 400);
    case "busy":
      return again(texts.busy, 503, 5);
    case "throttled": {
      const seconds = Math.ceil(result.waitMs / 1000);
      return again(texts.throttled(seconds), 429, seconds);
    }
    case "success":
      return beginSession(server, request, id, result.user.id);
    default:
      throw new Error(`no such outcome: ${String(result satisfies never)}`);
  }
}

/** A new session id at each sign-in; the one before ends, so that a planted cookie is worth nothing. */
async function beginSession(
  server: ServerContext,
  request: EndpointRequest,
  interactionId: string,
  userId: string,
): Promise<Answer> {
  const { config } = server;
  const before = readCookie(config, request.headers.cookie, "session");
  const { secret } = await server.database.transaction(async (transaction) => {
    if (before !== undefined) await endSessionBySecret(transaction, before);
    const session = await createSession(transaction, {
      userId,
      lifetimeMs: config.lifetimes.sessionMs,
      userAgent: request.headers["user-agent"] ?? "",
      address: request.address,
    });
    await rememberSignIn(transaction, interactionId, session.id);
    return session;
  });
  return seeOther(`${config.issuer}/interaction/${interactionId}`, {
    "set-cookie": setCookie(config, "session", secret, config.lifetimes.sessionMs),
  });
}

/** POST /interaction/ID/consent. */
export async function submitConsent(server: ServerContext, request: EndpointRequest, id: string): Promise<Answer> {
  const forged = forgedFormAnswer(server, request);
  if (forged !== undefined) return forged;
  const own = await ownInteraction(server, request, id);
  if (own === undefined || own.interaction.purpose !== "authorize") return expiredPage(server);
  const step = stepOf(request, own.interaction, false);
  const situation = await situationFor(server, request, own.interaction);
  // The client, the session or the request has changed under the page: show what is due instead.
  if (situation?.session === undefined || situation.refusal !== undefined || situation.need?.step === "login")
    return answerAuthorization(server, step);
  const form = Parameters.parse(request.body);
  const shown = shownOnConsentPage(own.interaction, situation);
  if (!csrfMatches(form.get("csrf"), own.browserSecret, ...shown))
    return consentStep(server, request, own.interaction, situation);
  if (form.get("decision") === "allow") return answerAuthorization(server, stepOf(request, own.interaction, true));
  if (form.get("decision") !== "deny") return consentStep(server, request, own.interaction, situation);
  const finished = await server.database.transaction((transaction) => finishInteraction(transaction, id));
  if (!finished) return expiredPage(server);
  return refuseClient(
    server,
    situation.draft,
    refuse("access_denied", "the owner denied the request"),
    situation.session,
  );
}
