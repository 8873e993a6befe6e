// A client may be registered for refresh tokens that last as long as somebody is signed in. Its refreshes are use of
// the session: who works in the application all day is not idle.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import { keepSession } from "../../store/sessions.ts";
import type { GrantContext, RefreshDraft } from "../draft.ts";

export async function requireLiveSession(
  { authorization, client }: RefreshDraft,
  { server, transaction }: GrantContext,
): Promise<Refusal | undefined> {
  if (!client.refreshEndsWithSession) return undefined;
  const { sessionIdleMs } = server.config.lifetimes;
  if (await keepSession(transaction, authorization!.sessionId, sessionIdleMs)) return undefined;
  return refuse("invalid_grant", "the sign-in that the refresh token came from has ended; begin again");
}
