// RFC 6749 §3.1.1: a missing response_type is invalid_request.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requireResponseType({ parameters }: AuthorizeDraft): Refusal | undefined {
  return parameters.has("response_type")
    ? undefined
    : refuse("invalid_request", "response_type is missing; it must be code");
}
