// Which scopes an owner can leave out of what a client asks for (RFC 6749 §3.3: what is granted may be less), and what
// remains then.
import type { Grant } from "../store/grants.ts";
import type { AuthorizeDraft } from "./draft.ts";

type Asked = Pick<AuthorizeDraft, "client" | "scope">;

/** Without `openid` there is no sign-in at the client (OpenID Connect Core §3.1.2.1), whatever else is allowed. */
export function isRequired({ client }: Pick<Asked, "client">, token: string): boolean {
  return token === "openid" || client.requiredScope.includes(token);
}

/** What of the scope is granted when `chosen` is ticked; what was not asked for is nowhere in it. */
export function allowedScope(asked: Asked, chosen: readonly string[]): readonly string[] {
  return asked.scope.filter((token) => isRequired(asked, token) || chosen.includes(token));
}

/** What a trusted client gets without a question: all but what the owner once left out. Empty for others. */
export function trustedScope(asked: Asked, grant: Grant | undefined): readonly string[] {
  if (!asked.client.isTrusted) return [];
  return asked.scope.filter((token) => isRequired(asked, token) || grant?.declined.includes(token) !== true);
}
