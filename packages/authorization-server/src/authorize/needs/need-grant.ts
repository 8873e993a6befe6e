// Nobody is asked about a trusted client. Remembered consent covers what was allowed before, and parts of it. What the
// owner left out then is not asked again, unless the client cannot do without it or nothing else remains.
import { isRequired, trustedScope } from "../choice-of-scopes.ts";
import { coversScope } from "../../protocol/scope.ts";
import type { Need, OwnerState } from "../owner-state.ts";

export function needGrant({ draft, grant, consentGiven }: OwnerState): Need | undefined {
  if (consentGiven || trustedScope(draft, grant).length > 0) return undefined;
  if (grant?.byOwner === true && coversScope(grant.resources, draft.resources)) {
    const isGranted = (token: string): boolean => grant.scope.includes(token);
    const isAnswered = (token: string): boolean =>
      isGranted(token) || (grant.declined.includes(token) && !isRequired(draft, token));
    if (draft.scope.every(isAnswered) && draft.scope.some(isGranted)) return undefined;
  }
  return {
    step: "consent",
    errorWithoutPrompt: "consent_required",
    description: "the owner has not consented to this yet",
  };
}
