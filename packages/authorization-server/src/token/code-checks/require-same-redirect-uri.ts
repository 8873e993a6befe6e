// RFC 6749 §4.1.3: redirect_uri is repeated, identical, when the authorization request had one.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { CodeDraft } from "../draft.ts";

export function requireSameRedirectUri({ parameters, authorization }: CodeDraft): Refusal | undefined {
  const sent = parameters.get("redirect_uri");
  if (sent === undefined) {
    if (!authorization!.redirectUriSent) return undefined;
    return refuse(
      "invalid_grant",
      "redirect_uri is missing; the authorization request had one, so it must be repeated",
    );
  }
  if (sent === authorization!.redirectUri) return undefined;
  return refuse("invalid_grant", "redirect_uri is not the one that the code was sent to");
}
