// RFC 9700 §2.1.2: the implicit and hybrid flows are not offered; the seed's response type is code.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requireCodeResponseType({ parameters }: AuthorizeDraft): Refusal | undefined {
  if (parameters.get("response_type") === "code") return undefined;
  return refuse("unsupported_response_type", "the only supported response_type is code");
}
