// RFC 7636 §4.4.1: only S256 is supported, and an absent method means plain (§4.3), so it must be named.
import { isS256Challenge } from "../../protocol/pkce.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requireS256(draft: AuthorizeDraft): Refusal | undefined {
  const challenge = draft.parameters.get("code_challenge");
  const method = draft.parameters.get("code_challenge_method");
  if (challenge === undefined) {
    return method === undefined
      ? undefined
      : refuse("invalid_request", "code_challenge_method was sent without code_challenge");
  }
  if (method !== "S256") return refuse("invalid_request", "code_challenge_method must be S256");
  if (!isS256Challenge(challenge))
    return refuse("invalid_request", "code_challenge is not the base64url form of a SHA-256 digest (43 characters)");
  draft.codeChallenge = challenge;
  return undefined;
}
