// RFC 6749 §4.1.3: code is required.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { CodeDraft } from "../draft.ts";

export function requireCode({ parameters }: CodeDraft): Refusal | undefined {
  return parameters.has("code") ? undefined : refuse("invalid_request", "code is missing");
}
