// What the owner has taken back meanwhile gives nothing any more.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { CodeDraft } from "../draft.ts";

export function refuseRevokedCode({ authorization }: CodeDraft): Refusal | undefined {
  if (authorization!.revokedAtMs === undefined) return undefined;
  return refuse("invalid_grant", "the code was revoked");
}
