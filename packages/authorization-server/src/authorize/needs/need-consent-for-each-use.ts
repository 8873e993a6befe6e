// RFC 6749 §10.2: repeated requests of a client that cannot authenticate are not answered without the owner, since
// another program may be asking in its name. An https address that is no machine's own belongs to the client, and the
// answer goes nowhere else (RFC 8252 §8.6).
import { isClaimedHttps } from "../../protocol/redirect-uri.ts";
import type { Need, OwnerState } from "../owner-state.ts";

export function needConsentForEachUse({ draft, consentGiven }: OwnerState): Need | undefined {
  if (!draft.client.isPublic || consentGiven || isClaimedHttps(draft.redirectUri)) return undefined;
  return {
    step: "consent",
    errorWithoutPrompt: "consent_required",
    description: "a public client needs the owner's consent each time, unless its redirect URI is https",
  };
}
