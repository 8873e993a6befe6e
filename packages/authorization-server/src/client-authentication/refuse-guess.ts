// A client that failed to authenticate (RFC 6749 §2.3.1): counted by client and network, and slowed down after some
// failures. Only the failure waits: a secret has 256 bits, cannot be guessed, and costs one digest to compare, so the
// right one always passes.
import { networkOf } from "../http/client-address.ts";
import { refuse } from "../protocol/refusal.ts";
import type { Refusal } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import type { ClientDraft } from "./draft.ts";
import { claimedClientId } from "./draft.ts";

export function refuseGuess(draft: ClientDraft, { clientGuesses }: ServerContext, reason: string): Refusal {
  const subject = `${claimedClientId(draft) ?? ""}\n${networkOf(draft.request.address)}`;
  const waitMs = clientGuesses.waitMs(subject);
  if (waitMs === 0) {
    clientGuesses.fail(subject);
    return refuse("invalid_client", "client authentication failed", reason);
  }
  return {
    error: "invalid_client",
    description: "too many failed attempts to authenticate as this client from this address; try again later",
    reason: `client secret guessing is throttled: ${reason}`,
    retryAfterSeconds: Math.ceil(waitMs / 1000),
  };
}
