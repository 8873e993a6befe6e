// Token introspection (RFC 7662), for the client that a token was issued to and for the resource servers it is meant
// for.
import { authenticateClient } from "../client-authentication/authenticate.ts";
import { refusalAnswer } from "../client-authentication/refusal-answer.ts";
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { json } from "../http/messages.ts";
import { refuse } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import type { Client } from "../store/clients.ts";
import { findUser } from "../store/users.ts";
import { ownClaims } from "../token/user-claims.ts";
import type { TokenInfo } from "./token-info.ts";
import { activeToken } from "./token-info.ts";

const style = { endpoint: "introspect", unauthorizedStatus: true };
const tokenIsMissing = refuse("invalid_request", "token is missing");

export async function introspect(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const authenticated = await authenticateClient(server, request, (parameters) =>
    parameters.has("token") ? undefined : tokenIsMissing,
  );
  if (authenticated.refusal !== undefined)
    return refusalAnswer(server, request, authenticated.refusal, style, authenticated.claimedClientId);
  const { client, parameters } = authenticated;
  if (client.isPublic) {
    const refusal = refuse("invalid_client", "introspection needs a client that authenticates", "public client");
    return refusalAnswer(server, request, refusal, style, client.id);
  }
  const info = await activeToken(server, parameters.get("token")!);
  // RFC 7662 §4: a stranger learns nothing but "not active".
  if (info === undefined || !mayLookAt(client, info)) return json(200, { active: false });
  return json(200, await describe(server, info));
}

function mayLookAt(client: Client, info: TokenInfo): boolean {
  if (info.clientId === client.id) return true;
  return info.kind === "access_token" && info.audience.some((audience) => client.resourceServerFor.includes(audience));
}

async function describe(server: ServerContext, info: TokenInfo): Promise<Readonly<Record<string, unknown>>> {
  // A client acting for itself is its own subject and has no user name.
  const user =
    info.subject === info.clientId ? undefined : await server.database.read((reader) => findUser(reader, info.subject));
  return {
    active: true,
    iss: server.config.issuer,
    client_id: info.clientId,
    sub: info.subject,
    username: user?.name,
    ...(user === undefined ? {} : ownClaims(user, info.scope)),
    scope: info.scope.length > 0 ? info.scope.join(" ") : undefined,
    aud: info.audience.length === 1 ? info.audience[0] : info.audience,
    token_type: info.kind === "access_token" ? "bearer" : undefined,
    iat: info.issuedAtMs === undefined ? undefined : Math.floor(info.issuedAtMs / 1000),
    exp: Math.floor(info.expiresAtMs / 1000),
    jti: info.kind === "access_token" ? info.id : undefined,
  };
}
