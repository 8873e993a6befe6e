// OpenID Connect Core §3.1.2.1: with id_token_hint the answer is about that user or there is none. The owner may sign in
// as that user, once; whoever signs in as somebody else gets the client its error.
import type { Need, OwnerState } from "../owner-state.ts";
import { signedInHere } from "../owner-state.ts";

export function needHintedUser(state: OwnerState): Need | undefined {
  const { hintedSubject } = state.draft;
  if (hintedSubject === undefined || state.session?.userId === hintedSubject) return undefined;
  return {
    step: signedInHere(state) ? "refusal" : "login",
    errorWithoutPrompt: "login_required",
    description: "another user is signed in than id_token_hint names",
  };
}
