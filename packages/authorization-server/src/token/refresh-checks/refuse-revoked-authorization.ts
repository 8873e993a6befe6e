// RFC 6749 §5.2: a revoked grant gives nothing, whichever token of its family is presented.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { RefreshDraft } from "../draft.ts";

export function refuseRevokedAuthorization({ authorization }: RefreshDraft): Refusal | undefined {
  if (authorization!.revokedAtMs === undefined) return undefined;
  return refuse("invalid_grant", "the refresh token was revoked; begin again at the authorization endpoint");
}
