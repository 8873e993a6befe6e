// A scope that is unknown, or not registered for the client, is ignored (OpenID Connect Core §3.1.2.1, RFC 6749 §3.3):
// the token answer names what was granted. No scope means the client's default; where nothing is left, there is a
// refusal.
import { formatScope, parseScope } from "../../protocol/scope.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requireAllowedScope(draft: AuthorizeDraft): Refusal | undefined {
  const { client } = draft;
  const asked = draft.parameters.get("scope");
  if (asked === undefined) {
    draft.scope =
      client.defaultScope ?? client.scope.filter((token) => token !== "openid" && token !== "offline_access");
    if (draft.scope.length > 0) return undefined;
    return refuse("invalid_scope", "scope is missing and the client has no default scope");
  }
  const scope = parseScope(asked);
  if (scope === undefined || scope.length === 0)
    return refuse("invalid_scope", "scope holds characters that RFC 6749 3.3 does not allow");
  draft.scope = scope.filter((token) => client.scope.includes(token));
  if (draft.scope.length > 0) return undefined;
  return refuse("invalid_scope", `not allowed for this client: ${formatScope(scope)}`);
}
