// Recognizes the client of a POST: form first, then identity.
import { firstRefusal } from "../protocol/checks.ts";
import type { EndpointRequest } from "../http/messages.ts";
import { Parameters } from "../protocol/parameters.ts";
import type { Refusal } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import type { Client } from "../store/clients.ts";
import { clientChecks } from "./client-checks.ts";
import type { ClientDraft } from "./draft.ts";
import { claimedClientId } from "./draft.ts";
import { messageChecks } from "./message-checks.ts";

export type AuthenticationResult =
  | { readonly client: Client; readonly parameters: Parameters; readonly refusal?: never }
  | { readonly refusal: Refusal; readonly claimedClientId: string | undefined };

/** `between` are an endpoint's own checks of the message, which need no client. */
export async function authenticateClient(
  server: ServerContext,
  request: EndpointRequest,
  between: (parameters: Parameters) => Refusal | undefined,
): Promise<AuthenticationResult> {
  const draft: ClientDraft = { parameters: Parameters.parse(request.body), request, basic: [], client: undefined };
  const refusal =
    (await firstRefusal(messageChecks, draft, server)) ??
    between(draft.parameters) ??
    (await firstRefusal(clientChecks, draft, server));
  if (refusal !== undefined) return { refusal, claimedClientId: claimedClientId(draft) };
  return { client: draft.client!, parameters: draft.parameters };
}
