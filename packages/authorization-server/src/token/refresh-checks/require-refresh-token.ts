// RFC 6749 §6: refresh_token is required.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { RefreshDraft } from "../draft.ts";

export function requireRefreshToken({ parameters }: RefreshDraft): Refusal | undefined {
  return parameters.has("refresh_token") ? undefined : refuse("invalid_request", "refresh_token is missing");
}
