// OpenID Connect Core §3.1.2.1: prompt=login asks for the password again, once for this request.
import type { Need, OwnerState } from "../owner-state.ts";
import { signedInHere } from "../owner-state.ts";

export function needFreshLogin(state: OwnerState): Need | undefined {
  if (!state.draft.prompt.has("login") || signedInHere(state)) return undefined;
  return { step: "login", errorWithoutPrompt: "login_required", description: "the client asks for a new sign-in" };
}
