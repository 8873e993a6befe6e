// RFC 6749 §5.2: an expired refresh token is invalid_grant.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { GrantContext, RefreshDraft } from "../draft.ts";

export function requireFreshRefreshToken(
  { refreshToken }: RefreshDraft,
  { transaction }: GrantContext,
): Refusal | undefined {
  if (transaction.nowMs < refreshToken!.expiresAtMs) return undefined;
  return refuse("invalid_grant", "the refresh token has expired; begin again at the authorization endpoint");
}
