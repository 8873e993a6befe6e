// RFC 6749 §4.1.3: parameters come as a form in the body.
import { isForm } from "../../http/messages.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ClientDraft } from "../draft.ts";

export function requireForm({ request }: ClientDraft): Refusal | undefined {
  if (!isForm(request)) return refuse("invalid_request", "the content type must be application/x-www-form-urlencoded");
  const charset = /charset="?([^";\s]+)/i.exec(request.headers["content-type"]!)?.[1];
  if (charset !== undefined && !/^(utf-?8|us-ascii)$/i.test(charset))
    return refuse("invalid_request", "the character set must be UTF-8 (RFC 6749 Appendix B)");
  return undefined;
}
