// RFC 9700 §4.14.2: refresh tokens rotate and reuse is detected. A client whose answer was lost may repeat the old
// token for a short while and gets the same successor; afterwards, or once the successor was used, reuse ends the
// family.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import {
  findRefreshTokenByDigest,
  rotateRefreshToken,
  successorOf,
  findRefreshToken,
} from "../../store/refresh-tokens.ts";
import type { RefreshToken } from "../../store/refresh-tokens.ts";
import type { GrantContext, RefreshDraft } from "../draft.ts";

const graceMs = 10_000;

export async function rotateOrRepeat(draft: RefreshDraft, context: GrantContext): Promise<Refusal | undefined> {
  const { transaction, server } = context;
  const token = draft.parameters.get("refresh_token")!;
  if (draft.refreshToken!.usedAtMs === undefined) {
    const lifetimeMs = server.config.lifetimes.refreshTokenMs;
    draft.successor = await rotateRefreshToken(transaction, token, draft.authorization!.id, lifetimeMs);
    if (draft.successor !== undefined) return undefined;
    // Another request has rotated it since it was read.
    draft.refreshToken = await findRefreshToken(transaction, token);
  }
  draft.successor = await repeatedSuccessor(draft.refreshToken!, token, context);
  if (draft.successor !== undefined) return undefined;
  draft.reused = true;
  return refuse(
    "invalid_grant",
    "the refresh token was used before; all tokens of this grant are revoked",
    "reuse of a rotated refresh token after its grace time",
  );
}

async function repeatedSuccessor(
  row: RefreshToken,
  token: string,
  { transaction }: GrantContext,
): Promise<string | undefined> {
  if (row.usedAtMs === undefined || transaction.nowMs - row.usedAtMs > graceMs) return undefined;
  const successor = await findRefreshTokenByDigest(transaction, row.successorDigest ?? "");
  if (successor === undefined || successor.usedAtMs !== undefined) return undefined;
  return successorOf(token, row);
}
