// RFC 6749 §4.4: only confidential clients act for themselves.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ClientCredentialsDraft } from "../draft.ts";

export function requireConfidentialClient({ client }: ClientCredentialsDraft): Refusal | undefined {
  return client.isPublic ? refuse("unauthorized_client", "a public client cannot act for itself") : undefined;
}
