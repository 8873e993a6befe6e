// OpenID Connect Core §3.1.2.1 and §5.5.1: with id_token_hint, or a `sub` in `claims`, the answer is about that user or
// there is none. The owner may sign in as that user, once; whoever signs in as somebody else gets the client its error.
import type { Need, OwnerState } from "../owner-state.ts";
import { isWantedSubject, signedInHere } from "../owner-state.ts";

export function needWantedUser(state: OwnerState): Need | undefined {
  if (isWantedSubject(state.draft, state.session?.userId)) return undefined;
  return {
    step: signedInHere(state) ? "refusal" : "login",
    errorWithoutPrompt: "login_required",
    description: "another user is signed in than the request asks for",
  };
}
