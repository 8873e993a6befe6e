// With Basic a client_id in the body is no second method, but it has to be the same client.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ClientDraft } from "../draft.ts";

export function requireMatchingClientId(draft: ClientDraft): Refusal | undefined {
  const inBody = draft.parameters.get("client_id");
  if (draft.basic.length === 0 || inBody === undefined) return undefined;
  const matching = draft.basic.filter((reading) => reading.clientId === inBody);
  if (matching.length === 0)
    return refuse("invalid_request", "client_id in the body is not the client of the Authorization header");
  draft.basic = matching;
  return undefined;
}
