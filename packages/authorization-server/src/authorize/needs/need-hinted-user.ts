// OpenID Connect Core §3.1.2.1: with id_token_hint the answer is about that user or there is none.
import type { Need, OwnerState } from "../owner-state.ts";

export function needHintedUser({ session, hintedSubject }: OwnerState): Need | undefined {
  if (hintedSubject === undefined || session?.userId === hintedSubject) return undefined;
  return {
    step: "login",
    errorWithoutPrompt: "login_required",
    description: "another user is signed in than id_token_hint names",
  };
}
