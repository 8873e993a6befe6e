// OpenID Connect Core §3.1.2.1: a hint that this server did not sign names nobody, so that no sign-in could match it.
// An expired one is fine. Keys are known for as long as the sessions that their ID tokens told of.
import { isIdToken } from "../../keys/jwt.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { ServerContext } from "../../server-context.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requireKnownHint(draft: AuthorizeDraft, { keys }: ServerContext): Refusal | undefined {
  const hint = draft.parameters.get("id_token_hint");
  if (hint === undefined) return undefined;
  const jwt = keys.verifyHint(hint);
  const subject = jwt !== undefined && isIdToken(jwt) ? jwt.claims["sub"] : undefined;
  if (typeof subject !== "string")
    return refuse("login_required", "id_token_hint is no ID token of this server, or older than its sessions");
  draft.wantedSubjects.push(new Set([subject]));
  return undefined;
}
