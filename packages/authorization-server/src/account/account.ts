// The account endpoints: the owner sees and takes back what applications may do, ends sessions, changes the password.
// Everything that changes something is a POST with a token bound to the session.
import { currentSession } from "../authorize/authorize.ts";
import { minPasswordCharacters, passwordFault } from "../crypto/password-rules.ts";
import type { PasswordFault } from "../crypto/password-rules.ts";
import { maxPasswordCharacters } from "../crypto/passwords.ts";
import { readCookie, setCookie } from "../http/cookies.ts";
import { isDocumentRequest } from "../http/fetch-metadata.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { seeOther } from "../http/messages.ts";
import { csrfMatches, csrfToken } from "../http/csrf.ts";
import { forgedFormAnswer, forgedPage } from "../interaction/forged-form-answer.ts";
import type { SignInResult } from "../interaction/sign-in.ts";
import { signIn } from "../interaction/sign-in.ts";
import { signInAddress } from "../protocol/sign-in-address.ts";
import type { AccountGrant } from "../pages/account-page.ts";
import { accountPage } from "../pages/account-page.ts";
import { messagePage } from "../pages/message-page.ts";
import type { Speech } from "../pages/speech.ts";
import { counted, duration, fillText, inSameLanguage, speechFor } from "../pages/speech.ts";
import type { Texts } from "../pages/texts.ts";
import { Parameters } from "../protocol/parameters.ts";
import type { ServerContext } from "../server-context.ts";
import { findAnyClient } from "../store/clients.ts";
import type { Reader } from "../store/database.ts";
import { listGrants, revokeGrant, revokeGrantsOfUser } from "../store/grants.ts";
import type { Session } from "../store/sessions.ts";
import { endSession, endSessionsOfUser, listSessions } from "../store/sessions.ts";
import { findUser, setPassword } from "../store/users.ts";

/** GET /account. Without a session: sign in first, then come back. */
export async function account(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const speech = speechFor(server, request);
  const { texts } = speech;
  if (!isDocumentRequest(request.headers)) return forgedPage(server, request);
  const session = await currentSession(server, request);
  if (session === undefined) return seeOther(inSameLanguage(signInAddress(server.config.issuer, ""), speech));
  const done = Parameters.parse(request.query).get("done");
  const notice = done === "revoked" ? texts.account.revoked : done === "ended" ? texts.account.ended : undefined;
  return show(server, request, session, { notice });
}

interface ShownBesides {
  readonly notice?: string | undefined;
  readonly passwordProblem?: string;
  readonly status?: number;
  readonly retryAfterSeconds?: number;
}

async function show(
  server: ServerContext,
  request: EndpointRequest,
  session: Session,
  more: ShownBesides,
): Promise<Answer> {
  const secret = readCookie(server.config, request.headers.cookie, "session")!;
  return server.database.read(async (reader) => {
    const user = await findUser(reader, session.userId);
    const sessions = await listSessions(reader, session.userId);
    return accountPage(server, speechFor(server, request), {
      csrf: csrfToken(secret, "account"),
      userName: user?.name ?? "",
      claims: Object.keys(user?.claims ?? {}),
      grants: await shownGrants(reader, session.userId),
      sessions: sessions.map((other) => ({ ...other, current: other.id === session.id })),
      ...more,
    });
  });
}

async function shownGrants(reader: Reader, userId: string): Promise<readonly AccountGrant[]> {
  const shown: AccountGrant[] = [];
  for (const grant of await listGrants(reader, { userId })) {
    const client = await findAnyClient(reader, grant.clientId);
    shown.push({
      id: grant.id,
      clientName: client?.name ?? grant.clientId,
      scope: grant.scope,
      sinceMs: grant.createdAtMs,
    });
  }
  return shown;
}

interface OwnForm {
  readonly session: Session;
  readonly form: Parameters;
}

/** The session and form of a POST that is the owner's own; or the answer to give instead. */
async function ownForm(
  server: ServerContext,
  request: EndpointRequest,
): Promise<OwnForm | { readonly answer: Answer }> {
  const forged = forgedFormAnswer(server, request);
  if (forged !== undefined) return { answer: forged };
  const session = await currentSession(server, request);
  const secret = readCookie(server.config, request.headers.cookie, "session");
  if (session === undefined || secret === undefined) return { answer: toAccount(server, request) };
  const form = Parameters.parse(request.body);
  if (csrfMatches(form.get("csrf"), secret, "account")) return { session, form };
  return { answer: forgedPage(server, request) };
}

function toAccount(server: ServerContext, request: EndpointRequest, done?: "revoked" | "ended"): Answer {
  const address = `${server.config.issuer}/account${done === undefined ? "" : `?done=${done}`}`;
  return seeOther(inSameLanguage(address, speechFor(server, request)));
}

/** POST /account/grants/ID/revoke. */
export async function revokeOwnGrant(server: ServerContext, request: EndpointRequest, id: string): Promise<Answer> {
  const own = await ownForm(server, request);
  if ("answer" in own) return own.answer;
  const { userId } = own.session;
  const revoked = await server.database.transaction((transaction) => revokeGrant(transaction, id, userId));
  if (revoked) server.audit.record({ event: "grant revoked by its owner", userId, address: request.address });
  return toAccount(server, request, "revoked");
}

/** POST /account/sessions/ID/end. */
export async function endOwnSession(server: ServerContext, request: EndpointRequest, id: string): Promise<Answer> {
  const own = await ownForm(server, request);
  if ("answer" in own) return own.answer;
  const { userId } = own.session;
  await server.database.transaction((transaction) => endSession(transaction, id, userId));
  server.audit.record({ event: "session ended by its owner", userId, address: request.address });
  return toAccount(server, request, "ended");
}

/** POST /account/sign-out. */
export async function signOut(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const own = await ownForm(server, request);
  if ("answer" in own) return own.answer;
  const { session } = own;
  await server.database.transaction((transaction) => endSession(transaction, session.id, session.userId));
  server.audit.record({ event: "signed out", userId: session.userId, address: request.address });
  const speech = speechFor(server, request);
  const { doneTitle, done } = speech.texts.logout;
  const answer = messagePage(server, speech, { status: 200, title: doneTitle, text: done, way: "signIn" });
  return { ...answer, headers: { ...answer.headers, "set-cookie": setCookie(server.config, "session", "", 0) } };
}

/** POST /account/password: ends every session and grant, since whoever knew the old password may hold some. */
export async function changePassword(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const own = await ownForm(server, request);
  if ("answer" in own) return own.answer;
  const { session, form } = own;
  const speech = speechFor(server, request);
  const { texts } = speech;
  const current = form.get("current") ?? "";
  const wanted = form.get("new") ?? "";
  const user = await server.database.read((reader) => findUser(reader, session.userId));
  const fault = await passwordFault(wanted, user?.name ?? "");
  if (fault !== undefined)
    return show(server, request, session, { passwordProblem: faultText(texts, fault), status: 400 });
  const attempt = { username: user?.name ?? "", password: current, request };
  const verdict = await signIn(server, attempt);
  if (verdict.outcome !== "success") {
    return show(server, request, session, passwordRefusal(speech, verdict));
  }
  await replacePassword(server, session.userId, wanted);
  server.audit.record({ event: "password changed", userId: session.userId, address: request.address });
  const answer = messagePage(server, speech, {
    status: 200,
    title: texts.account.passwordChangedTitle,
    text: texts.account.passwordChanged,
    way: "signIn",
  });
  return { ...answer, headers: { ...answer.headers, "set-cookie": setCookie(server.config, "session", "", 0) } };
}

function faultText(texts: Texts, fault: PasswordFault): string {
  switch (fault) {
    case "short":
      return counted(texts, texts.account.passwordShort, minPasswordCharacters);
    case "long":
    case "control":
      return fillText(texts.account.passwordUnfit, { count: String(maxPasswordCharacters) });
    case "common":
      return texts.account.passwordCommon;
    case "personal":
      return texts.account.passwordPersonal;
  }
}

function passwordRefusal({ texts }: Speech, verdict: Exclude<SignInResult, { outcome: "success" }>): ShownBesides {
  if (verdict.outcome === "wrong") return { passwordProblem: texts.account.passwordWrong, status: 400 };
  const { outcome, retryAfterSeconds } = verdict;
  const passwordProblem = fillText(texts.login[outcome], { wait: duration(texts, retryAfterSeconds) });
  return { passwordProblem, status: outcome === "busy" ? 503 : 429, retryAfterSeconds };
}

async function replacePassword(server: ServerContext, userId: string, password: string): Promise<void> {
  const hashed = await server.passwords.hash(password);
  await server.database.transaction(async (transaction) => {
    await setPassword(transaction, userId, hashed);
    await endSessionsOfUser(transaction, userId);
    await revokeGrantsOfUser(transaction, userId, "password changed");
  });
}
