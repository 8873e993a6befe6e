// The sign-in page. What it is for travels with it, tied to the browser's secret: nothing is kept of who only looks at
// it.
import { isWantedSubject } from "./owner-state.ts";
import type { Situation } from "./situation.ts";
import { newSecret } from "../crypto/secrets.ts";
import { browserCookieMs, readCookie, setCookie } from "../http/cookies.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { formTargets } from "../pages/form-targets.ts";
import { loginPage } from "../pages/login-page.ts";
import { inSameLanguage, speechFor } from "../pages/speech.ts";
import type { ServerContext } from "../server-context.ts";
import { findClientLook } from "../store/client-looks.ts";
import { findUser } from "../store/users.ts";
import { csrfToken } from "../http/csrf.ts";

export interface LoginStep {
  /** The authorization request, undecoded; empty on the way to the owner's own page. */
  readonly parameters: string;
  /** Undefined on the way to the owner's own page. */
  readonly situation: Situation | undefined;
  readonly problem?: string;
  readonly username?: string;
  readonly status?: number;
  readonly retryAfterSeconds?: number;
}

/** What the form's token is made from, besides the browser's secret. */
export function shownOnLoginPage(parameters: string): readonly string[] {
  return ["sign-in", parameters];
}

export async function loginStep(server: ServerContext, request: EndpointRequest, step: LoginStep): Promise<Answer> {
  const { config } = server;
  const { situation, parameters } = step;
  const draft = situation?.draft;
  const browserSecret = readCookie(config, request.headers.cookie, "browser") ?? newSecret();
  const speech = speechFor(server, request);
  const answer = loginPage(server, speech, {
    action: inSameLanguage(`${config.issuer}/sign-in`, speech),
    parameters,
    csrf: csrfToken(browserSecret, ...shownOnLoginPage(parameters)),
    clientName: draft?.client.name,
    look:
      draft === undefined ? undefined : await server.database.read((reader) => findClientLook(reader, draft.client.id)),
    username: step.username ?? (await suggestedUserName(server, situation)),
    again: situation?.session !== undefined && situation.need !== undefined && !asksForAnother(situation),
    problem: step.problem,
    status: step.status ?? 200,
    ...(step.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: step.retryAfterSeconds }),
    formTargets: draft === undefined ? [] : formTargets(draft.redirectUri, draft.client.formActionExtras),
  });
  const cookie = setCookie(config, "browser", browserSecret, browserCookieMs);
  return { ...answer, headers: { ...answer.headers, "set-cookie": cookie } };
}

/** The client wants somebody else than who is signed in: there is no password to give "again". */
function asksForAnother({ draft, session }: Situation): boolean {
  return !isWantedSubject(draft, session?.userId);
}

/** login_hint, else the account that is signed in, unless the owner is to choose another one. */
async function suggestedUserName(server: ServerContext, situation: Situation | undefined): Promise<string> {
  const hint = situation?.draft.parameters.get("login_hint");
  if (hint !== undefined) return hint.slice(0, 200);
  const userId = situation?.session?.userId;
  if (situation === undefined || userId === undefined) return "";
  if (situation.draft.prompt.has("select_account") || asksForAnother(situation)) return "";
  return (await server.database.read((reader) => findUser(reader, userId)))?.name ?? "";
}
