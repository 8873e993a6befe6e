// A refresh token lives no longer than the consent that it came from: what the owner cannot see any more on the account
// page must not go on.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import { isGrantInForce } from "../../store/grants.ts";
import type { GrantContext, RefreshDraft } from "../draft.ts";

export async function requireLiveGrant(
  { authorization }: RefreshDraft,
  { transaction }: GrantContext,
): Promise<Refusal | undefined> {
  if (await isGrantInForce(transaction, authorization!.grantId)) return undefined;
  return refuse("invalid_grant", "the owner's consent has expired; begin again at the authorization endpoint");
}
