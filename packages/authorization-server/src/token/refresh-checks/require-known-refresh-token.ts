// RFC 6749 §5.2: an unknown refresh token is invalid_grant.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import { findAuthorization } from "../../store/authorizations.ts";
import { findRefreshToken } from "../../store/refresh-tokens.ts";
import type { GrantContext, RefreshDraft } from "../draft.ts";

export async function requireKnownRefreshToken(
  draft: RefreshDraft,
  { transaction }: GrantContext,
): Promise<Refusal | undefined> {
  draft.refreshToken = await findRefreshToken(transaction, draft.parameters.get("refresh_token")!);
  if (draft.refreshToken !== undefined)
    draft.authorization = await findAuthorization(transaction, draft.refreshToken.authorizationId);
  if (draft.authorization !== undefined) return undefined;
  return refuse("invalid_grant", "the refresh token is not valid", "no such refresh token");
}
