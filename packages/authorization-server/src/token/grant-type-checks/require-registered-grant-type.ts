// RFC 6749 §5.2: a client that is not registered for the grant is unauthorized_client.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { RegisteredGrantTypeDraft } from "../draft.ts";

export function requireRegisteredGrantType({ parameters, client }: RegisteredGrantTypeDraft): Refusal | undefined {
  const asked = parameters.get("grant_type");
  if (client.grantTypes.some((type) => type === asked)) return undefined;
  return refuse("unauthorized_client", `the client is not registered for the grant type ${asked}`);
}
