// Answers that travel through the browser to the client's redirect URI: in its query (RFC 6749 §4.1.2), or as a form
// where the client asks for it.
import type { Answer } from "../http/messages.ts";
import { found } from "../http/messages.ts";
import { formPostPage } from "../pages/form-post-page.ts";
import { formTargets } from "../pages/form-targets.ts";
import { speechFor } from "../pages/speech.ts";
import { answerLocation } from "../protocol/redirect-uri.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { printableDescription } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import type { Session } from "../store/sessions.ts";
import type { AuthorizeDraft } from "./draft.ts";

/** `iss` goes with every answer, so that a client with several servers knows who speaks (RFC 9207 §2). */
export function answerClient(
  server: ServerContext,
  draft: AuthorizeDraft,
  answer: ReadonlyArray<readonly [string, string]>,
): Answer {
  const complete = [...answer, ["iss", server.config.issuer]] as const;
  if (draft.responseMode === "query") return found(answerLocation(draft.redirectUri, complete, draft.state));
  const state = draft.parameters.get("state");
  return formPostPage(server, speechFor(server, draft.request), {
    redirectUri: draft.redirectUri,
    fields: state === undefined ? complete : [...complete, ["state", state]],
    formTargets: formTargets(draft.redirectUri, draft.client.formActionExtras),
  });
}

export function refuseClient(
  server: ServerContext,
  draft: AuthorizeDraft,
  refusal: Refusal,
  session: Session | undefined,
): Answer {
  const who = { clientId: draft.client.id, userId: session?.userId, address: draft.request.address };
  const errorId = server.audit.refusal("authorize refused", refusal, who);
  server.metrics.refusals("authorize", refusal.error).increment();
  return answerClient(server, draft, [
    ["error", refusal.error],
    ["error_description", printableDescription(`${refusal.description} (error id ${errorId})`)],
    ["error_uri", `${server.config.issuer}/errors/${refusal.error}`],
  ]);
}
