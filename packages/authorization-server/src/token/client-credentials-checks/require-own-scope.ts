// RFC 6749 §4.4.2: the client's own scopes; those that speak of a signed-in user mean nothing here.
import { parseScope } from "../../protocol/scope.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ClientCredentialsDraft } from "../draft.ts";

const aboutUsers = new Set(["openid", "profile", "email", "offline_access"]);

export function requireOwnScope(draft: ClientCredentialsDraft): Refusal | undefined {
  const own = (draft.client.defaultScope ?? draft.client.scope).filter((token) => !aboutUsers.has(token));
  const asked = draft.parameters.get("scope");
  if (asked === undefined) {
    draft.scope = own;
    return undefined;
  }
  const scope = parseScope(asked);
  if (scope === undefined || !scope.every((token) => draft.client.scope.includes(token) && !aboutUsers.has(token)))
    return refuse("invalid_scope", "a scope is not allowed for this client acting for itself");
  draft.scope = scope;
  return undefined;
}
