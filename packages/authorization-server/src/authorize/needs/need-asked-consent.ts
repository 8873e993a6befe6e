// OpenID Connect Core §3.1.2.1: prompt=consent asks the owner even where consent is remembered.
import type { Need, OwnerState } from "../owner-state.ts";

export function needAskedConsent({ draft, consentGiven }: OwnerState): Need | undefined {
  if (!draft.prompt.has("consent") || consentGiven) return undefined;
  return { step: "consent", errorWithoutPrompt: "consent_required", description: "the client asks for consent" };
}
