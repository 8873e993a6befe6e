// RFC 6749 §4.1.1: client_id is required, once; without it there is nowhere to answer to (§4.1.2.1).
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AddressDraft } from "../draft.ts";

export function requireClientId({ parameters }: AddressDraft): Refusal | undefined {
  if (parameters.repeated.has("client_id")) return refuse("invalid_request", "client_id was sent more than once");
  if (parameters.malformed.has("client_id")) return refuse("invalid_request", "client_id is not valid UTF-8 text");
  if (!parameters.has("client_id")) return refuse("invalid_request", "client_id is missing");
  return undefined;
}
