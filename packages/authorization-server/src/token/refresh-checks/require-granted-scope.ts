// RFC 6749 §6: a refresh may narrow the scope, never widen it; left out, it is the original one. What the client is not
// registered for (any more) it neither gets nor asks for.
import { coversScope, parseScope } from "../../protocol/scope.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { RefreshDraft } from "../draft.ts";

export function requireGrantedScope(draft: RefreshDraft): Refusal | undefined {
  const isRegistered = (token: string): boolean => draft.client.scope.includes(token);
  const granted = draft.authorization!.scope.filter(isRegistered);
  if (granted.length === 0)
    return refuse("invalid_scope", "the client is no longer registered for anything that the owner granted");
  const asked = draft.parameters.get("scope");
  if (asked === undefined) {
    draft.scope = granted;
    return undefined;
  }
  const scope = parseScope(asked)?.filter(isRegistered);
  if (scope === undefined || scope.length === 0 || !coversScope(granted, scope))
    return refuse("invalid_scope", "the scope is not part of what the owner granted");
  draft.scope = scope;
  return undefined;
}
