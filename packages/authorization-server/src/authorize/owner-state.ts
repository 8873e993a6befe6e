// What is known of the resource owner when a request has to be answered, and what may still be needed.
import type { OAuthError } from "../protocol/refusal.ts";
import type { Grant } from "../store/grants.ts";
import type { Interaction } from "../store/interactions.ts";
import type { Session } from "../store/sessions.ts";
import type { AuthorizeDraft } from "./draft.ts";

export interface OwnerState {
  readonly draft: AuthorizeDraft;
  readonly session: Session | undefined;
  readonly grant: Grant | undefined;
  /** Absent on the first visit of the authorization endpoint. */
  readonly interaction: Interaction | undefined;
  /** The owner has just said yes to exactly this request. */
  readonly consentGiven: boolean;
  readonly nowMs: number;
}

export interface Need {
  /** The owner's next page; `refusal` when nothing that the owner can do would help. */
  readonly step: "login" | "consent" | "refusal";
  readonly errorWithoutPrompt: OAuthError;
  readonly description: string;
}

/** Whether the owner signed in within this very interaction. */
export function signedInHere({ session, interaction }: OwnerState): boolean {
  return session !== undefined && interaction?.sessionId === session.id;
}

/** The request is about nobody in particular, or about this user. */
export function isWantedSubject({ wantedSubjects }: AuthorizeDraft, userId: string | undefined): boolean {
  return wantedSubjects.every((wanted) => wanted.has(userId));
}
