// RFC 6749 §10.2: repeated requests of a client that cannot authenticate are not answered without the owner, since
// another program may be asking in its name.
import type { Need, OwnerState } from "../owner-state.ts";

export function needConsentForEachUse({ draft, consentGiven }: OwnerState): Need | undefined {
  if (!draft.client.isPublic || consentGiven) return undefined;
  return {
    step: "consent",
    errorWithoutPrompt: "consent_required",
    description: "a public client needs the owner's consent each time",
  };
}
