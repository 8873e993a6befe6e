// RFC 6749 §2.3: a client uses one authentication method a request.
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ClientDraft } from "../draft.ts";

export function requireOneMethod({ request, parameters }: ClientDraft): Refusal | undefined {
  if (request.headers.authorization === undefined) return undefined;
  if (parameters.has("client_secret"))
    return refuse(
      "invalid_request",
      "client credentials came both in the Authorization header and in the body; use one",
    );
  if (parameters.has("client_assertion"))
    return refuse(
      "invalid_request",
      "client credentials came both in the Authorization header and as client_assertion",
    );
  return undefined;
}
