// A redirect URI that was sent twice or cannot be read is no redirect URI (RFC 6749 §3.1, §4.1.2.1).
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AddressDraft } from "../draft.ts";

export function requireReadableRedirectUri({ parameters }: AddressDraft): Refusal | undefined {
  if (parameters.repeated.has("redirect_uri")) return refuse("invalid_request", "redirect_uri was sent more than once");
  if (parameters.malformed.has("redirect_uri"))
    return refuse("invalid_request", "redirect_uri is not valid UTF-8 text");
  return undefined;
}
