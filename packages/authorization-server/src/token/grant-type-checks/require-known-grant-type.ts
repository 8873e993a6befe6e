// RFC 6749 §5.2: unsupported_grant_type; RFC 9700 §2.4 forbids the password grant.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import { grantTypes } from "../../store/clients.ts";
import type { GrantTypeDraft } from "../draft.ts";

export function requireKnownGrantType({ parameters }: GrantTypeDraft): Refusal | undefined {
  if ((grantTypes as readonly string[]).includes(parameters.get("grant_type")!)) return undefined;
  return refuse("unsupported_grant_type", `grant_type must be one of ${grantTypes.join(", ")}`);
}
