// The sign-in page of an interaction.
import type { Situation } from "../authorize/situation.ts";
import { readCookie } from "../http/cookies.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { formTargets } from "../pages/form-targets.ts";
import { loginPage } from "../pages/login-page.ts";
import type { ServerContext } from "../server-context.ts";
import type { Interaction } from "../store/interactions.ts";
import { findUser } from "../store/users.ts";
import { csrfToken } from "./csrf.ts";
import { expiredPage } from "./expired-page.ts";

export interface LoginStep {
  /** Undefined on the way to the owner's own page. */
  readonly situation?: Situation | undefined;
  readonly problem?: string;
  readonly username?: string;
  readonly status?: number;
  readonly retryAfterSeconds?: number;
}

export async function loginStep(
  server: ServerContext,
  request: EndpointRequest,
  interaction: Interaction | undefined,
  step: LoginStep,
): Promise<Answer> {
  const browserSecret = readCookie(server.config, request.headers.cookie, "browser");
  if (interaction === undefined || browserSecret === undefined) return expiredPage(server);
  const { situation } = step;
  const draft = situation?.draft;
  return loginPage(server, {
    action: `${server.config.issuer}/interaction/${interaction.id}/login`,
    csrf: csrfToken(browserSecret, "login", interaction.id),
    clientName: draft?.client.name,
    username: step.username ?? (await suggestedUserName(server, situation)),
    again: situation?.session !== undefined && situation.need !== undefined && !asksForAnother(situation),
    problem: step.problem,
    status: step.status ?? 200,
    ...(step.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: step.retryAfterSeconds }),
    formTargets: draft === undefined ? [] : formTargets(draft.redirectUri, draft.client.formActionExtras),
  });
}

/** The client wants somebody else than who is signed in: there is no password to give "again". */
function asksForAnother({ draft, session }: Situation): boolean {
  return draft.hintedSubject !== undefined && draft.hintedSubject !== session?.userId;
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
