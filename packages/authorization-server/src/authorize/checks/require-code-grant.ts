// RFC 6749 §4.1.2.1: unauthorized_client when the client may not use this flow.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requireCodeGrant({ client }: AuthorizeDraft): Refusal | undefined {
  if (client.grantTypes.includes("authorization_code")) return undefined;
  return refuse("unauthorized_client", "the client is not registered for the grant type authorization_code");
}
