// RFC 6749 §2.3.1: guessing of client secrets is slowed down, by client and address.
import type { Refusal } from "../../protocol/refusal.ts";
import type { ServerContext } from "../../server-context.ts";
import type { ClientDraft } from "../draft.ts";
import { claimedClientId } from "../draft.ts";

export function guessSubject(draft: ClientDraft): string {
  return `${claimedClientId(draft) ?? ""}\n${draft.request.address}`;
}

export function requirePatience(draft: ClientDraft, { clientGuesses }: ServerContext): Refusal | undefined {
  const waitMs = clientGuesses.waitMs(guessSubject(draft));
  if (waitMs === 0) return undefined;
  return {
    error: "invalid_client",
    description: "too many failed attempts to authenticate as this client from this address; try again later",
    reason: "client secret guessing is throttled",
    retryAfterSeconds: Math.ceil(waitMs / 1000),
  };
}
