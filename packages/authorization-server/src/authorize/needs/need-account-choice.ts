// OpenID Connect Core §3.1.2.1: prompt=select_account lets the owner change the account, which here is a new sign-in.
import type { Need, OwnerState } from "../owner-state.ts";
import { signedInHere } from "../owner-state.ts";

export function needAccountChoice(state: OwnerState): Need | undefined {
  if (!state.draft.prompt.has("select_account") || signedInHere(state)) return undefined;
  return {
    step: "login",
    errorWithoutPrompt: "account_selection_required",
    description: "the client asks for a choice of account",
  };
}
