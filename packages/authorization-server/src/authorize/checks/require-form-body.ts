// OpenID Connect's POST to the authorization endpoint is a form like its query (Core §3.1.2.1).
import { isForm } from "../../http/messages.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AddressDraft } from "../draft.ts";

export function requireFormBody(draft: AddressDraft): Refusal | undefined {
  if (draft.request.method !== "POST" || isForm(draft.request)) return undefined;
  return refuse("invalid_request", "the content type must be application/x-www-form-urlencoded");
}
