// RFC 6749 §6: a refresh may narrow the scope, never widen it; left out, it is the original one.
import { coversScope, parseScope } from "../../protocol/scope.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { RefreshDraft } from "../draft.ts";

export function requireGrantedScope(draft: RefreshDraft): Refusal | undefined {
  const granted = draft.authorization!.scope;
  const asked = draft.parameters.get("scope");
  if (asked === undefined) {
    draft.scope = granted;
    return undefined;
  }
  const scope = parseScope(asked);
  if (scope === undefined || scope.length === 0 || !coversScope(granted, scope))
    return refuse("invalid_scope", "the scope is not part of what the owner granted");
  draft.scope = scope;
  return undefined;
}
