// The consent page of an interaction, and the token that ties the answer to what the page showed.
import { isRequired } from "./choice-of-scopes.ts";
import type { Situation } from "./situation.ts";
import { readCookie } from "../http/cookies.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { consentPage } from "../pages/consent-page.ts";
import { formTargets } from "../pages/form-targets.ts";
import { inSameLanguage, speechFor } from "../pages/speech.ts";
import type { ServerContext } from "../server-context.ts";
import type { Interaction } from "../store/interactions.ts";
import { findClientLook } from "../store/client-looks.ts";
import { findUser } from "../store/users.ts";
import { csrfToken } from "../http/csrf.ts";
import { expiredPage } from "../pages/expired-page.ts";
import { signInAddress } from "../protocol/sign-in-address.ts";

/** What the owner has seen: a change of the client's registration in between makes the answer void. */
export function shownOnConsentPage(interaction: Interaction, { draft, session }: Situation): readonly string[] {
  const required = draft.scope.filter((token) => isRequired(draft, token));
  return [
    "consent",
    interaction.id,
    session?.id ?? "",
    draft.scope.join(" "),
    required.join(" "),
    draft.resources.join(" "),
  ];
}

export async function consentStep(
  server: ServerContext,
  request: EndpointRequest,
  interaction: Interaction,
  situation: Situation,
): Promise<Answer> {
  const browserSecret = readCookie(server.config, request.headers.cookie, "browser");
  const { draft, session, grant } = situation;
  if (browserSecret === undefined || session === undefined) return expiredPage(server, request);
  const { user, look } = await server.database.read(async (reader) => ({
    user: await findUser(reader, session.userId),
    look: await findClientLook(reader, draft.client.id),
  }));
  const address = `${server.config.issuer}/interaction/${interaction.id}`;
  const speech = speechFor(server, request);
  return consentPage(server, speech, {
    action: inSameLanguage(`${address}/consent`, speech),
    switchAccount: signInAddress(server.config.issuer, interaction.parameters),
    csrf: csrfToken(browserSecret, ...shownOnConsentPage(interaction, situation)),
    clientId: draft.client.id,
    clientName: draft.client.name,
    look,
    isPublic: draft.client.isPublic,
    userName: user?.name ?? "",
    scope: draft.scope.map((token) => ({
      token,
      isRequired: isRequired(draft, token),
      isTicked: grant?.declined.includes(token) !== true,
    })),
    claims: Object.keys(user?.claims ?? {}),
    resources: draft.resources,
    redirectUri: draft.redirectUri,
    formTargets: formTargets(draft.redirectUri, draft.client.formActionExtras),
  });
}
