// RFC 6749 §4.1.2.1: an unknown client gets no redirect.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ServerContext } from "../../server-context.ts";
import { findClient } from "../../store/clients.ts";
import type { AddressDraft } from "../draft.ts";

export async function requireKnownClient(draft: AddressDraft, server: ServerContext): Promise<Refusal | undefined> {
  const id = draft.parameters.get("client_id")!;
  draft.client = await server.database.read((reader) => findClient(reader, id));
  if (draft.client !== undefined) return undefined;
  return refuse("invalid_request", "no client is registered under this client_id", "unknown or disabled client");
}
