// The one statement that makes a code work once, whatever runs at the same time: only one request can set its
// redemption time. Losing this race is a replay like any other.
import type { Refusal } from "../../protocol/refusal.ts";
import { consumeCode } from "../../store/authorizations.ts";
import type { CodeDraft, GrantContext } from "../draft.ts";
import { replayRefusal } from "./refuse-replayed-code.ts";

export async function requireFirstRedemption(
  draft: CodeDraft,
  { transaction }: GrantContext,
): Promise<Refusal | undefined> {
  if (await consumeCode(transaction, draft.authorization!.id)) return undefined;
  draft.replayed = true;
  return replayRefusal;
}
