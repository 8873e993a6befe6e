// Token revocation (RFC 7009). A refresh token takes its whole authorization with it; an access token only itself.
import { authenticateClient } from "../client-authentication/authenticate.ts";
import { refusalAnswer } from "../client-authentication/refusal-answer.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { json } from "../http/messages.ts";
import { refuse } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import { revokeTokenId } from "../store/access-tokens.ts";
import { findAuthorization, revokeAuthorization } from "../store/authorizations.ts";
import { findRefreshToken } from "../store/refresh-tokens.ts";
import { activeToken } from "./token-info.ts";

const style = { endpoint: "revoke", unauthorizedStatus: true };
const tokenIsMissing = refuse("invalid_request", "token is missing");

export async function revoke(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const authenticated = await authenticateClient(server, request, (parameters) =>
    parameters.has("token") ? undefined : tokenIsMissing,
  );
  if (authenticated.refusal !== undefined)
    return refusalAnswer(server, request, authenticated.refusal, style, authenticated.claimedClientId);
  const { client, parameters } = authenticated;
  const token = parameters.get("token")!;
  const owner = await revokeOwn(server, client.id, token);
  if (owner === "foreign") {
    // RFC 7009 §2.1: a token of another client is refused, and left alone.
    const refusal = refuse(
      "invalid_request",
      "the token was not issued to this client",
      "revocation of a foreign token",
    );
    return refusalAnswer(server, request, refusal, style, client.id);
  }
  if (owner === "own") {
    server.audit.record({ event: "token revoked by its client", clientId: client.id, address: request.address });
  }
  // RFC 7009 §2.2: unknown tokens are a success too. The body is ignored by the standard, but simple-oauth2 insists on
  // JSON.
  return json(200, {});
}

async function revokeOwn(
  server: ServerContext,
  clientId: string,
  token: string,
): Promise<"own" | "foreign" | "unknown"> {
  const { database } = server;
  const asRefresh = await database.transaction(async (transaction) => {
    const refresh = await findRefreshToken(transaction, token);
    if (refresh === undefined) return "unknown";
    const authorization = await findAuthorization(transaction, refresh.authorizationId);
    if (authorization?.clientId !== clientId) return "foreign";
    await revokeAuthorization(transaction, authorization.id, "revoked by its client");
    return "own";
  });
  if (asRefresh !== "unknown") return asRefresh;
  const info = await activeToken(server, token);
  if (info === undefined) return "unknown";
  if (info.clientId !== clientId) return "foreign";
  await database.transaction((transaction) => revokeTokenId(transaction, info.id, info.expiresAtMs));
  return "own";
}
