// RFC 6749 §3.2.1: a client that does not authenticate still says who it is.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ClientDraft } from "../draft.ts";
import { claimedClientId } from "../draft.ts";

export function requireClientIdentifier(draft: ClientDraft): Refusal | undefined {
  if (claimedClientId(draft) !== undefined) return undefined;
  return refuse(
    "invalid_client",
    "no client authentication: send Authorization: Basic, or client_id and client_secret",
  );
}
