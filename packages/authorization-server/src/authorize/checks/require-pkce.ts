// RFC 9700 §2.1.1 and RFC 7636 §4.4.1: public clients use PKCE; so do clients registered for it, and all in strict
// mode.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ServerContext } from "../../server-context.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requirePkce({ parameters, client }: AuthorizeDraft, { config }: ServerContext): Refusal | undefined {
  if (parameters.has("code_challenge")) return undefined;
  if (!client.isPublic && !client.requiresPkce && !config.strict) return undefined;
  return refuse("invalid_request", "code_challenge is missing; this client must use PKCE (RFC 7636) with S256");
}
