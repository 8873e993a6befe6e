// The request is kept while the owner signs in, on behalf of somebody unknown: so its size has a limit of its own, that
// of an address with everything a client may sensibly send.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AddressDraft } from "../draft.ts";

const maxBytes = 16_384;

export function requireShortRequest({ parameters }: AddressDraft): Refusal | undefined {
  if (parameters.textLength <= maxBytes) return undefined;
  return refuse("invalid_request", `the request is longer than ${maxBytes} bytes`);
}
