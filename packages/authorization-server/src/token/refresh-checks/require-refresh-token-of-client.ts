// RFC 6749 §6: a refresh token works for the client that it was issued to; another client's attempt changes nothing.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { RefreshDraft } from "../draft.ts";

export function requireRefreshTokenOfClient({ authorization, client }: RefreshDraft): Refusal | undefined {
  if (authorization!.clientId === client.id) return undefined;
  return refuse(
    "invalid_grant",
    "the refresh token is not valid",
    `it belongs to the client ${authorization!.clientId}`,
  );
}
