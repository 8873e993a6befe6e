// RFC 9700 §4.8.2: a verifier for a code without challenge is the sign of a downgrade attack.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { CodeDraft } from "../draft.ts";

export function refuseVerifierWithoutChallenge({ parameters, authorization }: CodeDraft): Refusal | undefined {
  if (authorization!.codeChallenge !== undefined || !parameters.has("code_verifier")) return undefined;
  return refuse("invalid_grant", "code_verifier was sent, but the authorization request had no code_challenge");
}
