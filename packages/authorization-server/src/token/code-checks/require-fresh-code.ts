// RFC 6749 §4.1.2: codes expire shortly after they are issued.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { CodeDraft, GrantContext } from "../draft.ts";

export function requireFreshCode({ authorization }: CodeDraft, { transaction }: GrantContext): Refusal | undefined {
  if (transaction.nowMs < authorization!.codeExpiresAtMs) return undefined;
  return refuse("invalid_grant", "the code has expired; begin again at the authorization endpoint");
}
