// The token endpoint (RFC 6749 §3.2): message → client → grant type → grant, and one transaction for what is consumed
// and what is issued.
import { authenticateClient } from "../client-authentication/authenticate.ts";
import type { RefusalStyle } from "../client-authentication/refusal-answer.ts";
import { refusalAnswer } from "../client-authentication/refusal-answer.ts";
import type { Check } from "../protocol/checks.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import type { Refusal } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import type { GrantType } from "../store/clients.ts";
import { grantTypeChecks, registeredGrantTypeChecks } from "./grant-type-checks.ts";
import { grants } from "./grants.ts";
import { tokenAnswer } from "./token-answer.ts";

function tokenStyle(server: ServerContext, request: EndpointRequest): RefusalStyle {
  const basic = request.headers.authorization !== undefined;
  return { endpoint: "token", unauthorizedStatus: server.config.strict && basic };
}

export async function token(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const style = tokenStyle(server, request);
  const authenticated = await authenticateClient(server, request, (parameters) =>
    firstOf(grantTypeChecks, { parameters }),
  );
  if (authenticated.refusal !== undefined)
    return refusalAnswer(server, request, authenticated.refusal, style, authenticated.claimedClientId);
  const { client, parameters } = authenticated;
  const notRegistered = firstOf(registeredGrantTypeChecks, { parameters, client });
  if (notRegistered !== undefined) return refusalAnswer(server, request, notRegistered, style, client.id);
  const grantType = parameters.get("grant_type") as GrantType;
  const result = await server.database.transaction((transaction) =>
    grants[grantType]({ server, transaction }, client, parameters),
  );
  if ("refusal" in result) return refusalAnswer(server, request, result.refusal, style, client.id);
  server.metrics.tokensIssued(grantType).increment();
  if (server.log.debugEnabled) server.log.debug("token issued", { grant_type: grantType, client_id: client.id });
  return tokenAnswer(server, result.success);
}

function firstOf<Draft>(table: ReadonlyArray<Check<Draft, undefined>>, draft: Draft): Refusal | undefined {
  for (const check of table) {
    const result = check(draft, undefined);
    if (result instanceof Promise) throw new Error("a check of grant_type does not wait");
    if (result !== undefined) return result;
  }
  return undefined;
}
