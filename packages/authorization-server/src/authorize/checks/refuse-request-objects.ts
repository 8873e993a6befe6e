// OpenID Connect Core §6 and §7.2.1: what is not supported is refused by its own name, since ignoring it would answer
// another question than the one that was asked.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function refuseRequestObjects({ parameters }: AuthorizeDraft): Refusal | undefined {
  if (parameters.has("request")) return refuse("request_not_supported", "request objects are not supported");
  if (parameters.has("request_uri")) return refuse("request_uri_not_supported", "request_uri is not supported");
  if (parameters.has("registration")) return refuse("registration_not_supported", "registration is not supported");
  return undefined;
}
