// RFC 6749 §3.1: the authorization server first verifies the identity of the resource owner.
import type { Need, OwnerState } from "../owner-state.ts";

export function needSession({ session }: OwnerState): Need | undefined {
  if (session !== undefined) return undefined;
  return { step: "login", errorWithoutPrompt: "login_required", description: "the owner is not signed in" };
}
