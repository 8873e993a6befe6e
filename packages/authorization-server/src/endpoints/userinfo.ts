// The UserInfo endpoint (OpenID Connect Core §5.3), a protected resource by RFC 6750.
import type { Answer, EndpointRequest } from "../http/messages.ts";
import { isForm, json } from "../http/messages.ts";
import { Parameters } from "../protocol/parameters.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { printableDescription, refuse } from "../protocol/refusal.ts";
import type { ServerContext } from "../server-context.ts";
import { findUser } from "../store/users.ts";
import { identityClaims } from "../token/user-claims.ts";
import { activeToken } from "./token-info.ts";

export async function userinfo(server: ServerContext, request: EndpointRequest): Promise<Answer> {
  const token = bearerToken(request);
  // RFC 6750 §3.1: a request without any token gets a challenge without an error.
  if (token === undefined) return challenge(server, undefined, 401);
  if (typeof token !== "string") return refused(server, request, token, 400);
  const info = await activeToken(server, token);
  if (info === undefined || info.kind !== "access_token") {
    return refused(
      server,
      request,
      refuse("invalid_token", "the access token is expired, revoked or not from here"),
      401,
    );
  }
  if (!info.audience.includes(server.config.issuer)) {
    const refusal = refuse("invalid_token", "the access token is meant for another resource server");
    return refused(server, request, refusal, 401);
  }
  if (!info.scope.includes("openid")) {
    return refused(server, request, refuse("insufficient_scope", "the access token lacks the scope openid"), 403);
  }
  const user = await server.database.read((reader) => findUser(reader, info.subject));
  if (user === undefined || user.disabledAtMs !== undefined) {
    return refused(server, request, refuse("invalid_token", "the account is no longer in use"), 401);
  }
  return json(200, { sub: user.id, ...identityClaims(user, info.scope) });
}

/** From the header, or from a POST's form (RFC 6750 §2.1, §2.2); never from the address. */
function bearerToken(request: EndpointRequest): string | Refusal | undefined {
  const header = request.headers.authorization;
  const inForm =
    request.method === "POST" && isForm(request) ? Parameters.parse(request.body).get("access_token") : undefined;
  if (header !== undefined && inForm !== undefined)
    return refuse("invalid_request", "the access token came both in the header and in the body");
  if (header === undefined) return inForm;
  return (
    /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i.exec(header)?.[1] ??
    refuse("invalid_request", "the header is not Authorization: Bearer TOKEN")
  );
}

function challenge(server: ServerContext, refusal: Refusal | undefined, status: number): Answer {
  const error =
    refusal === undefined
      ? ""
      : `, error="${refusal.error}", error_description="${printableDescription(refusal.description)}"`;
  const body =
    refusal === undefined ? {} : { error: refusal.error, error_description: printableDescription(refusal.description) };
  return json(status, body, { "www-authenticate": `Bearer realm="${server.config.issuer}"${error}` });
}

function refused(server: ServerContext, request: EndpointRequest, refusal: Refusal, status: number): Answer {
  const errorId = server.audit.refusal("userinfo refused", refusal, { address: request.address });
  server.metrics.refusals("userinfo", refusal.error).increment();
  return challenge(server, { ...refusal, description: `${refusal.description} (error id ${errorId})` }, status);
}
