// RFC 9700 §2.1 and §4.1.3: exact comparison with what is registered; only the port of a native client's loopback URI
// varies. It may be left out when there is exactly one to be meant (RFC 6749 §3.1.2.3).
import { redirectUriMatches } from "../../protocol/redirect-uri.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AddressDraft } from "../draft.ts";

/** Of what was sent, in the log. */
const maxToldLength = 300;

export function requireRegisteredRedirectUri(draft: AddressDraft): Refusal | undefined {
  const client = draft.client!;
  const sent = draft.parameters.get("redirect_uri");
  if (sent === undefined) {
    if (client.redirectUris.length !== 1)
      return refuse(
        "invalid_request",
        `redirect_uri is missing and the client has ${client.redirectUris.length} registered`,
      );
    draft.redirectUri = client.redirectUris[0];
    return undefined;
  }
  if (!client.redirectUris.some((registered) => redirectUriMatches(registered, sent, client.isPublic)))
    return refuse(
      "invalid_request",
      "redirect_uri is not registered for this client, character for character",
      `asked for ${sent.slice(0, maxToldLength)}; registered: ${client.redirectUris.join(" ")}`,
    );
  draft.redirectUri = sent;
  return undefined;
}
