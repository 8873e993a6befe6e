// RFC 6749 §2.3.1 and §3.2: credentials and grants are never in the address, where logs keep them.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ClientDraft } from "../draft.ts";

export function refuseQuery({ request }: ClientDraft): Refusal | undefined {
  if (request.query === "") return undefined;
  return refuse("invalid_request", "parameters belong into the body; this address takes no query");
}
