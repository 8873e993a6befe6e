// Where an authorization request stands when its path is walked: what has come, and what is known of it and of its
// owner.
import type { EndpointRequest } from "../http/messages.ts";
import type { Refusal } from "../protocol/refusal.ts";
import type { Grant } from "../store/grants.ts";
import type { Interaction } from "../store/interactions.ts";
import type { Session } from "../store/sessions.ts";
import type { AuthorizeDraft } from "./draft.ts";
import type { Need } from "./owner-state.ts";

export interface AuthorizationStep {
  readonly request: EndpointRequest;
  /** The authorization request, undecoded. */
  readonly parameters: string;
  readonly interaction: Interaction | undefined;
  /** What of the scope the owner has just allowed. */
  readonly allowed: readonly string[] | undefined;
}

/** What is known of an authorization request and of its owner, before the owner's next step is decided. */
export interface Situation {
  readonly draft: AuthorizeDraft;
  readonly refusal: Refusal | undefined;
  readonly session: Session | undefined;
  readonly grant: Grant | undefined;
  readonly need: Need | undefined;
}
