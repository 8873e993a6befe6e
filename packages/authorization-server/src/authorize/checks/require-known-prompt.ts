// OpenID Connect Core §3.1.2.1: prompt is a list of known words, and none stands alone.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

const known = new Set(["none", "login", "consent", "select_account"]);

export function requireKnownPrompt(draft: AuthorizeDraft): Refusal | undefined {
  const text = draft.parameters.get("prompt");
  if (text === undefined) return undefined;
  const words = new Set(text.split(" ").filter((word) => word !== ""));
  for (const word of words) {
    if (!known.has(word))
      return refuse("invalid_request", "prompt holds a value other than none, login, consent, select_account");
  }
  if (words.has("none") && words.size > 1)
    return refuse("invalid_request", "prompt=none does not go with other values");
  draft.prompt = words;
  return undefined;
}
