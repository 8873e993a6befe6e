// RFC 6749 §5.2: an unknown code is invalid_grant.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import { findByCode } from "../../store/authorizations.ts";
import type { CodeDraft, GrantContext } from "../draft.ts";

export async function requireKnownCode(draft: CodeDraft, { transaction }: GrantContext): Promise<Refusal | undefined> {
  draft.authorization = await findByCode(transaction, draft.parameters.get("code")!);
  if (draft.authorization !== undefined) return undefined;
  return refuse("invalid_grant", "the code is not valid", "no such code, or its authorization has been deleted");
}
