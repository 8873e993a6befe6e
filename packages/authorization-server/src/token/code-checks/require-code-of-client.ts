// RFC 6749 §4.1.3: a code works for the client that it was issued to. Another client's attempt neither uses it up nor
// revokes anything, or a stolen code would be a weapon.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { CodeDraft } from "../draft.ts";

export function requireCodeOfClient({ authorization, client }: CodeDraft): Refusal | undefined {
  if (authorization!.clientId === client.id) return undefined;
  return refuse("invalid_grant", "the code is not valid", `the code belongs to the client ${authorization!.clientId}`);
}
