// Remembered consent covers what was allowed before, and parts of it.
import { coversScope } from "../../protocol/scope.ts";
import type { Need, OwnerState } from "../owner-state.ts";

export function needGrant({ draft, grant, consentGiven }: OwnerState): Need | undefined {
  if (consentGiven) return undefined;
  if (grant !== undefined && coversScope(grant.scope, draft.scope) && coversScope(grant.resources, draft.resources))
    return undefined;
  return {
    step: "consent",
    errorWithoutPrompt: "consent_required",
    description: "the owner has not consented to this yet",
  };
}
