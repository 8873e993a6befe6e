// The pages between a sign-in and its answer: showing the step that is due, and consenting. A step is always worked out
// anew from the stored request and the present state; a page carries no state of its own.
import type { AuthorizationStep, Situation } from "../authorize/situation.ts";
import { addressOf, answerAuthorization, currentSession, situationOf } from "../authorize/authorize.ts";
import { allowedScope } from "../authorize/choice-of-scopes.ts";
import { refuseClient } from "../authorize/client-answer.ts";
import { readCookie } from "../http/cookies.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { messagePage } from "../pages/message-page.ts";
import { fillText, speechFor } from "../pages/speech.ts";
import { Parameters } from "../protocol/parameters.ts";
import { refuse } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import type { Interaction } from "../store/interactions.ts";
import { denyInteraction, findDenied, findInteraction } from "../store/interactions.ts";
import { consentStep, shownOnConsentPage } from "../authorize/consent-step.ts";
import { csrfMatches } from "../http/csrf.ts";
import { expiredPage } from "../pages/expired-page.ts";
import { forgedFormAnswer } from "./forged-form-answer.ts";

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

function stepOf(
  request: EndpointRequest,
  interaction: Interaction,
  allowed: readonly string[] | undefined,
): AuthorizationStep {
  return { request, parameters: interaction.parameters, interaction, allowed };
}

/**
 * The end after a no, where the browser has stayed (applications that are no web pages) or has come back; else that it
 * has expired.
 */
async function overPage(server: ServerContext, request: EndpointRequest, id: string): Promise<Answer> {
  const browserSecret = readCookie(server.config, request.headers.cookie, "browser");
  if (browserSecret === undefined) return expiredPage(server, request);
  const denied = await server.database.read((reader) => findDenied(reader, id, browserSecret));
  const address = denied === undefined ? undefined : await addressOf(server, stepOf(request, denied, undefined));
  if (address === undefined || "refusal" in address) return expiredPage(server, request);
  const { client, redirectUri } = address.draft;
  const speech = speechFor(server, request);
  const { deniedTitle, denied: text } = speech.texts.error;
  const { protocol, origin } = new URL(redirectUri);
  const way = protocol === "https:" ? { origin } : "account";
  return messagePage(server, speech, { status: 200, title: fillText(deniedTitle, { client: client.name }), text, way });
}

/** GET /interaction/ID: whatever is due now. */
export async function showInteraction(server: ServerContext, request: EndpointRequest, id: string): Promise<Answer> {
  const own = await ownInteraction(server, request, id);
  if (own === undefined) return overPage(server, request, id);
  return answerAuthorization(server, stepOf(request, own.interaction, undefined));
}

/** Undefined when the request itself is beyond repair. */
async function situationFor(
  server: ServerContext,
  request: EndpointRequest,
  interaction: Interaction,
): Promise<Situation | undefined> {
  const step = stepOf(request, interaction, undefined);
  const address = await addressOf(server, step);
  if ("refusal" in address) return undefined;
  return situationOf(server, step, address.draft, await currentSession(server, request));
}

/** POST /interaction/ID/consent. */
export async function submitConsent(server: ServerContext, request: EndpointRequest, id: string): Promise<Answer> {
  const forged = forgedFormAnswer(server, request);
  if (forged !== undefined) return forged;
  const own = await ownInteraction(server, request, id);
  if (own === undefined) return overPage(server, request, id);
  const step = stepOf(request, own.interaction, undefined);
  const situation = await situationFor(server, request, own.interaction);
  // The client, the session or the request has changed under the page: show what is due instead.
  if (situation?.session === undefined || situation.refusal !== undefined || situation.need?.step === "login")
    return answerAuthorization(server, step);
  const { draft } = situation;
  // Each scope that is ticked is a parameter.
  const form = Parameters.parse(request.body, { maxParameters: draft.scope.length + 10 });
  const shown = shownOnConsentPage(own.interaction, situation);
  if (!csrfMatches(form.get("csrf"), own.browserSecret, ...shown))
    return consentStep(server, request, own.interaction, situation);
  const decision = form.get("decision");
  if (decision !== "allow" && decision !== "deny") return consentStep(server, request, own.interaction, situation);
  const allowed = decision === "allow" ? allowedScope(draft, form.all("scope")) : [];
  if (allowed.length > 0) return answerAuthorization(server, stepOf(request, own.interaction, allowed));
  const finished = await server.database.transaction((transaction) => denyInteraction(transaction, id));
  if (!finished) return overPage(server, request, id);
  return refuseClient(server, draft, refuse("access_denied", "the owner denied the request"), situation.session);
}
