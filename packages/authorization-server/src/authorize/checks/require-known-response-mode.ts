// The answer travels in the query, or as a form where the client asks for it; one that waits for a fragment must be
// told.
import type { Refusal } from "../../protocol/refusal.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requireKnownResponseMode({ parameters, responseMode }: AuthorizeDraft): Refusal | undefined {
  const mode = parameters.get("response_mode");
  if (mode === undefined || mode === responseMode) return undefined;
  if (mode === "form_post") return refuse("invalid_request", "response_mode=form_post needs an http(s) redirect URI");
  return refuse("invalid_request", "response_mode must be query or form_post");
}
