// The answer travels in the query component (the seed); a client that waits for another mode must be told.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requireQueryResponseMode({ parameters }: AuthorizeDraft): Refusal | undefined {
  const mode = parameters.get("response_mode");
  if (mode === undefined || mode === "query") return undefined;
  return refuse("invalid_request", "the only supported response_mode is query");
}
