// RFC 6749 §3.2.1: confidential clients authenticate, and whatever credentials a request carries are verified; a
// client_id alone authenticates nobody.
import { timingSafeEqual } from "node:crypto";
import { digest } from "../../crypto/secrets.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ServerContext } from "../../server-context.ts";
import type { ClientDraft } from "../draft.ts";
import { refuseGuess } from "../refuse-guess.ts";

export function requireSecret(draft: ClientDraft, server: ServerContext): Refusal | undefined {
  const client = draft.client!;
  const inBody = draft.parameters.get("client_secret");
  const secrets = [
    ...draft.basic.filter((reading) => reading.clientId === client.id).map((reading) => reading.secret),
    inBody,
  ].filter((secret) => secret !== undefined);
  if (draft.parameters.has("client_assertion"))
    return refuse("invalid_client", "client_assertion is not supported; use Basic or client_secret");
  if (secrets.length === 0) {
    if (client.isPublic) return undefined;
    return refuse(
      "invalid_client",
      "this client must authenticate: send its secret",
      "confidential client without secret",
    );
  }
  const live = [client.secretDigest, client.previousSecret?.digest].filter((each) => each !== undefined);
  const sent = secrets.map((secret) => digest(secret));
  if (live.some((each) => sent.some((given) => sameDigest(given, each)))) return undefined;
  return refuseGuess(draft, server, client.isPublic ? "a public client sent a secret" : "wrong secret");
}

function sameDigest(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}
