// The JSON form of a refusal (RFC 6749 §5.2), for endpoints that clients call.
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { json } from "../http/messages.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { printableDescription } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";

export interface RefusalStyle {
  readonly endpoint: string;
  /**
   * Whether invalid_client is 401 with a challenge; the seed's token endpoint says 400 (strict mode: 401 after Basic).
   */
  readonly unauthorizedStatus: boolean;
}

export function refusalAnswer(
  server: ServerContext,
  request: EndpointRequest,
  refusal: Refusal,
  style: RefusalStyle,
  clientId: string | undefined,
): Answer {
  const errorId = server.audit.refusal(`${style.endpoint} refused`, refusal, { clientId, address: request.address });
  server.metrics.refusals(style.endpoint, refusal.error).increment();
  const body = {
    error: refusal.error,
    error_description: printableDescription(`${refusal.description} (error id ${errorId})`),
    error_uri: `${server.config.issuer}/errors/${refusal.error}`,
  };
  if (refusal.retryAfterSeconds !== undefined)
    return json(429, body, { "retry-after": String(refusal.retryAfterSeconds) });
  if (refusal.error === "temporarily_unavailable") return json(503, body, { "retry-after": "5" });
  if (refusal.error === "invalid_client" && style.unauthorizedStatus)
    return json(401, body, { "www-authenticate": `Basic realm="${server.config.issuer}", charset="UTF-8"` });
  return json(400, body, request.method === "POST" ? {} : { allow: "POST" });
}
