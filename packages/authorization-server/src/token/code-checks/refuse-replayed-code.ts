// RFC 6749 §4.1.2: a second use is refused and ends what the first one gave.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { CodeDraft } from "../draft.ts";

export const replayRefusal = refuse(
  "invalid_grant",
  "the code was redeemed before; the tokens that it gave are revoked",
  "replay of a redeemed code",
);

export function refuseReplayedCode(draft: CodeDraft): Refusal | undefined {
  if (draft.authorization!.codeConsumedAtMs === undefined) return undefined;
  draft.replayed = true;
  return replayRefusal;
}
