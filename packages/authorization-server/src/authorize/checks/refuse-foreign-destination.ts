// Other programs on the same origin could read our pages by script; only navigations of the whole window are served
// (RFC 9700 §4.16, and the decision on Sec-Fetch-Dest).
import { isDocumentRequest } from "../../http/fetch-metadata.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { AddressDraft } from "../draft.ts";

export function refuseForeignDestination(draft: AddressDraft): Refusal | undefined {
  if (isDocumentRequest(draft.request.headers)) return undefined;
  return refuse("invalid_request", "this page opens in a window of its own, not in a frame or by script");
}
