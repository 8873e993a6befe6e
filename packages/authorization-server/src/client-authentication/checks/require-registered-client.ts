// RFC 6749 §5.2: an unknown client is invalid_client; the answer does not tell it from a wrong secret.
import type { Refusal } from "../../protocol/refusal.ts";
import type { ServerContext } from "../../server-context.ts";
import { findClient } from "../../store/clients.ts";
import type { ClientDraft } from "../draft.ts";
import { claimedClientId } from "../draft.ts";
import { refuseGuess } from "../refuse-guess.ts";

export async function requireRegisteredClient(draft: ClientDraft, server: ServerContext): Promise<Refusal | undefined> {
  const ids = new Set(
    draft.basic.length > 0 ? draft.basic.map((reading) => reading.clientId) : [claimedClientId(draft)!],
  );
  for (const id of ids) {
    draft.client ??= await server.database.read((reader) => findClient(reader, id));
  }
  if (draft.client !== undefined) return undefined;
  return refuseGuess(draft, server, "unknown or disabled client");
}
