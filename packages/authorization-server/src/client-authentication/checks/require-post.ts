// RFC 6749 §3.2: clients use POST.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ClientDraft } from "../draft.ts";

export function requirePost({ request }: ClientDraft): Refusal | undefined {
  return request.method === "POST" ? undefined : refuse("invalid_request", "the method must be POST");
}
