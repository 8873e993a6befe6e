// RFC 7636 §4.6: the verifier must match the challenge that the code is bound to.
import { isVerifier, verifierMatches } from "../../protocol/pkce.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { CodeDraft } from "../draft.ts";

export function requireVerifier({ parameters, authorization }: CodeDraft): Refusal | undefined {
  const challenge = authorization!.codeChallenge;
  if (challenge === undefined) return undefined;
  const verifier = parameters.get("code_verifier");
  if (verifier === undefined)
    return refuse("invalid_grant", "code_verifier is missing; the code is bound to a challenge");
  if (!isVerifier(verifier))
    return refuse("invalid_grant", "code_verifier must be 43 to 128 characters of A-Z a-z 0-9 - . _ ~");
  return verifierMatches(verifier, challenge)
    ? undefined
    : refuse("invalid_grant", "code_verifier does not match the challenge");
}
