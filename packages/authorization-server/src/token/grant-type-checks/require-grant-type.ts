// RFC 6749 §4.1.3: grant_type is required.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { GrantTypeDraft } from "../draft.ts";

export function requireGrantType({ parameters }: GrantTypeDraft): Refusal | undefined {
  return parameters.has("grant_type") ? undefined : refuse("invalid_request", "grant_type is missing");
}
