// OpenID Connect Core §3.1.2.1: a sign-in older than max_age seconds does not count.
import type { Need, OwnerState } from "../owner-state.ts";
import { signedInHere } from "../owner-state.ts";

export function needRecentLogin(state: OwnerState): Need | undefined {
  const { maxAgeMs } = state.draft;
  if (maxAgeMs === undefined || signedInHere(state)) return undefined;
  if (state.nowMs - state.session!.authenticatedAtMs <= maxAgeMs && maxAgeMs > 0) return undefined;
  return {
    step: "login",
    errorWithoutPrompt: "login_required",
    description: "the sign-in is older than max_age allows",
  };
}
