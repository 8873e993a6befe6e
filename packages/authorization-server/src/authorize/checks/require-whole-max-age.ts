// OpenID Connect Core §3.1.2.1: max_age is a number of seconds.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requireWholeMaxAge(draft: AuthorizeDraft): Refusal | undefined {
  const text = draft.parameters.get("max_age");
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) return refuse("invalid_request", "max_age is not a whole number of seconds");
  draft.maxAgeMs = Number(text) * 1000;
  return undefined;
}
