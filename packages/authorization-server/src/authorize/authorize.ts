// The authorization endpoint (RFC 6749 §3.1): where may an answer go → who is the owner → is the request sound → what
// does the owner still have to do → a code. The same path runs again when the owner comes back from a page.
import { firstRefusal } from "../protocol/checks.ts";
import { newSecret } from "../crypto/secrets.ts";
import { browserCookieMs, readCookie, setCookie } from "../http/cookies.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { isForm, seeOther } from "../http/messages.ts";
import { consentStep } from "./consent-step.ts";
import { expiredPage } from "../pages/expired-page.ts";
import { loginStep } from "./login-step.ts";
import { fitsAddress, signInAddress, withQuery } from "../protocol/sign-in-address.ts";
import { refusalPage } from "../pages/message-page.ts";
import { inSameLanguage, speechFor } from "../pages/speech.ts";
import { echoableState } from "../protocol/redirect-uri.ts";
import { Parameters } from "../protocol/parameters.ts";
import { refuse } from "../protocol/refusal.ts";
import type { Refusal } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import { issueCode } from "../store/authorizations.ts";
import { DatabaseUnavailable } from "../store/database.ts";
import type { Transaction } from "../store/database.ts";
import { findGrant, rememberConsent } from "../store/grants.ts";
import type { ConsentGiven } from "../store/grants.ts";
import { coversScope } from "../protocol/scope.ts";
import { trustedScope } from "./choice-of-scopes.ts";
import type { Interaction } from "../store/interactions.ts";
import { createInteraction, finishInteraction } from "../store/interactions.ts";
import type { Session } from "../store/sessions.ts";
import { findSession, isSessionKept, joinSession, touchSession } from "../store/sessions.ts";
import { holdUser } from "../store/users.ts";
import { addressChecks } from "./address-checks.ts";
import { answerClient, refuseClient } from "./client-answer.ts";
import type { AddressDraft, AuthorizeDraft, ResponseMode } from "./draft.ts";
import { firstNeed } from "./owner-checks.ts";
import { requestChecks } from "./request-checks.ts";
import type { AuthorizationStep, Situation } from "./situation.ts";

/** GET, and OpenID Connect's POST, of `/authorize`. */
export async function authorize(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const isPost = request.method === "POST";
  // A browser sends our cookies with a form of another site only after a redirect: asked again, it says who it is.
  if (isPost && request.headers.cookie === undefined && isForm(request) && fitsAddress(request.body)) {
    return seeOther(withQuery(`${server.config.issuer}/authorize`, request.body));
  }
  const parameters = isPost ? request.body : request.query;
  return answerAuthorization(server, { request, parameters, interaction: undefined, allowed: undefined });
}

export async function answerAuthorization(server: ServerContext, step: AuthorizationStep): Promise<Answer> {
  const address = await addressOf(server, step);
  if ("refusal" in address) {
    const { refusal, clientId } = address;
    server.metrics.refusals("authorize", refusal.error).increment();
    const who = { clientId, address: step.request.address };
    return refusalPage(
      server,
      speechFor(server, step.request),
      refusal,
      server.audit.refusal("authorize refused with a page", refusal, who),
    );
  }
  const { draft } = address;
  let session: Session | undefined;
  try {
    session = await currentSession(server, step.request);
    return await answerAddressed(server, step, await situationOf(server, step, draft, session));
  } catch (error) {
    // RFC 9700 §4.11, where it is wanted: no failure is redirected until the owner is known, it surfaces as a page.
    if (session === undefined && server.config.errorsAfterSignIn) throw error;
    if (error instanceof DatabaseUnavailable)
      return refuseClient(
        server,
        draft,
        refuse("temporarily_unavailable", "try again in a minute", String(error)),
        session,
      );
    server.log.error("authorize failed", { error: error instanceof Error ? (error.stack ?? "") : String(error) });
    return refuseClient(
      server,
      draft,
      refuse("server_error", "something went wrong inside the server", String(error)),
      session,
    );
  }
}

export async function addressOf(
  server: ServerContext,
  step: AuthorizationStep,
): Promise<{ draft: AuthorizeDraft } | { refusal: Refusal; clientId: string | undefined }> {
  const parameters = Parameters.parse(step.parameters);
  // A request that comes back from our own pages was a form already.
  const request = step.interaction === undefined ? step.request : { ...step.request, method: "GET" };
  const draft: AddressDraft = { parameters, request, client: undefined, redirectUri: undefined };
  const refusal = await firstRefusal(addressChecks, draft, server);
  if (refusal !== undefined) return { refusal, clientId: parameters.get("client_id") };
  return {
    draft: {
      parameters,
      request,
      client: draft.client!,
      redirectUri: draft.redirectUri!,
      redirectUriSent: parameters.has("redirect_uri"),
      responseMode: responseModeOf(parameters, draft.redirectUri!),
      state: echoableState(parameters.raw("state"), parameters.get("state")),
      scope: [],
      resources: [],
      codeChallenge: undefined,
      prompt: new Set(),
      maxAgeMs: undefined,
      wantedSubjects: [],
      idTokenClaims: [],
    },
  };
}

/** Also how a refusal travels, so it is settled before any check of the request; what it cannot be is refused there. */
function responseModeOf(parameters: Parameters, redirectUri: string): ResponseMode {
  const asksForForm = parameters.get("response_mode") === "form_post" && !parameters.repeated.has("response_mode");
  return asksForForm && /^https?:/.test(redirectUri) ? "form_post" : "query";
}

export async function currentSession(server: ServerContext, request: EndpointRequest): Promise<Session | undefined> {
  const secret = readCookie(server.config, request.headers.cookie, "session");
  if (secret === undefined) return undefined;
  return server.database.read((reader) => findSession(reader, secret, server.config.lifetimes.sessionIdleMs));
}

export async function situationOf(
  server: ServerContext,
  step: AuthorizationStep,
  draft: AuthorizeDraft,
  session: Session | undefined,
): Promise<Situation> {
  const refusal = await firstRefusal(requestChecks, draft, server);
  if (refusal !== undefined) return { draft, refusal, session, grant: undefined, need: undefined };
  return server.database.read(async (reader) => {
    const grant = session === undefined ? undefined : await findGrant(reader, session.userId, draft.client.id);
    const { interaction, allowed } = step;
    const state = { draft, session, grant, interaction, consentGiven: allowed !== undefined, nowMs: reader.nowMs };
    return { draft, refusal, session, grant, need: firstNeed(state) };
  });
}

async function answerAddressed(server: ServerContext, step: AuthorizationStep, situation: Situation): Promise<Answer> {
  const { draft, refusal, session, need } = situation;
  const silent = draft.prompt.has("none");
  if (refusal !== undefined && (session !== undefined || silent || !server.config.errorsAfterSignIn)) {
    await finishQuietly(server, step.interaction);
    return refuseClient(server, draft, refusal, session);
  }
  if (need !== undefined && (silent || need.step === "refusal")) {
    await finishQuietly(server, step.interaction);
    return refuseClient(server, draft, refuse(need.errorWithoutPrompt, need.description), session);
  }
  if (refusal !== undefined || need !== undefined) {
    if (session === undefined || need?.step !== "consent") return toSignIn(server, step, situation);
    if (step.interaction === undefined) return beginInteraction(server, step, session);
    return consentStep(server, step.request, step.interaction, situation);
  }
  return issue(server, step, situation);
}

/** To a page that can be reloaded without asking the client again. */
async function toSignIn(server: ServerContext, step: AuthorizationStep, situation: Situation): Promise<Answer> {
  const { parameters } = step;
  if (fitsAddress(parameters)) return seeOther(signInAddress(server.config.issuer, parameters));
  return loginStep(server, step.request, { parameters, situation });
}

/** Keeps the request and sends the browser to its page, which can be reloaded without asking the client again. */
async function beginInteraction(server: ServerContext, step: AuthorizationStep, session: Session): Promise<Answer> {
  const { config } = server;
  const known = readCookie(config, step.request.headers.cookie, "browser");
  const browserSecret = known ?? newSecret();
  const interaction = await server.database.transaction((transaction) =>
    createInteraction(transaction, {
      parameters: step.parameters,
      sessionId: undefined,
      userId: session.userId,
      browserSecret,
      lifetimeMs: config.lifetimes.interactionMs,
    }),
  );
  const speech = speechFor(server, step.request);
  return seeOther(inSameLanguage(`${config.issuer}/interaction/${interaction.id}`, speech), {
    "set-cookie": setCookie(config, "browser", browserSecret, browserCookieMs),
  });
}

async function finishQuietly(server: ServerContext, interaction: Interaction | undefined): Promise<void> {
  if (interaction === undefined) return;
  await server.database.transaction((transaction) => finishInteraction(transaction, interaction.id));
}

async function issue(server: ServerContext, step: AuthorizationStep, situation: Situation): Promise<Answer> {
  const { draft, grant } = situation;
  const session = situation.session!;
  const { config } = server;
  const answered = newAnswer(step, situation);
  const code = await server.database.transaction(async (transaction) => {
    if (step.interaction !== undefined && !(await finishInteraction(transaction, step.interaction.id)))
      return undefined;
    if (answered !== undefined && !(await mayAnswer(transaction, session))) return undefined;
    await touchSession(transaction, session);
    const hearsOfEnd = draft.client.backchannelLogoutUri !== undefined && draft.scope.includes("openid");
    if (hearsOfEnd && !(await joinSession(transaction, session.id, draft.client.id))) return undefined;
    const given =
      answered === undefined
        ? grant!
        : await rememberConsent(transaction, {
            userId: session.userId,
            clientId: draft.client.id,
            ...answered,
            resources: draft.resources,
            lifetimeMs: config.lifetimes.consentMs,
          });
    return issueCode(transaction, {
      clientId: draft.client.id,
      userId: session.userId,
      grantId: given.id,
      sessionId: session.id,
      redirectUri: draft.redirectUri,
      redirectUriSent: draft.redirectUriSent,
      scope: draft.scope.filter((token) => given.scope.includes(token)),
      resources: draft.resources,
      codeChallenge: draft.codeChallenge,
      nonce: draft.parameters.get("nonce"),
      idTokenClaims: draft.idTokenClaims,
      authenticatedAtMs: session.authenticatedAtMs,
      codeLifetimeMs: config.lifetimes.codeMs,
      tokensLifetimeMs: config.lifetimes.accessTokenMs,
    });
  });
  // Two answers to one consent page: the other one has the code.
  if (code === undefined) return expiredPage(server, step.request);
  server.metrics.codesIssued.increment();
  if (answered !== undefined) {
    const event = answered.byOwner ? "consent given" : "allowed without consent: the client is trusted";
    const { address } = step.request;
    server.audit.record({ event, clientId: draft.client.id, userId: session.userId, address });
  }
  return answerClient(server, draft, [["code", code]]);
}

/** A new password or an end of everything, while the answer was on its way, leaves no consent behind. */
async function mayAnswer(transaction: Transaction, { userId, id }: Session): Promise<boolean> {
  return (await holdUser(transaction, userId)) && (await isSessionKept(transaction, id));
}

/**
 * What the owner has just answered, or what a trusted client is given in the owner's place; undefined where the grant
 * says it already.
 */
function newAnswer(
  { allowed }: AuthorizationStep,
  { draft, grant }: Situation,
): Pick<ConsentGiven, "asked" | "scope" | "byOwner"> | undefined {
  if (allowed !== undefined) return { asked: draft.scope, scope: allowed, byOwner: true };
  const scope = trustedScope(draft, grant);
  const isGranted =
    grant !== undefined && coversScope(grant.scope, scope) && coversScope(grant.resources, draft.resources);
  return isGranted ? undefined : { asked: scope, scope, byOwner: false };
}
