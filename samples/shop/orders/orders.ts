// A protected resource: it shows orders to whoever brings an access token that was meant for it, with the scope for it.
import type { IncomingMessage, ServerResponse } from "node:http";
import { createRemoteJWKSet, errors, jwtVerify } from "jose";
import type { JWTPayload } from "jose";
import type { Handler } from "../serve.ts";
import { methodIs, pathOf, reasonOf, sendJson, sendText } from "../serve.ts";

export interface OrdersOptions {
  /** `iss` of acceptable tokens. */
  readonly issuer: string;
  /** `aud` of acceptable tokens: this service. */
  readonly audience: string;
  readonly jwksUrl: string;
}

const neededScope = "orders.read";

export function createOrders(options: OrdersOptions): Handler {
  const keys = createRemoteJWKSet(new URL(options.jwksUrl), { cooldownDuration: 1000 });
  return async (request, response) => {
    const path = pathOf(request);
    if (path === "/health") return sendText(response, 200, "ok\n");
    if (path !== "/api/orders") return sendJson(response, 404, { error: `no such path: ${path}` });
    if (!methodIs(request, response, "GET")) return;
    const token = bearerToken(request);
    if (token === undefined) return challenge(response, 401, "");
    let claims: JWTPayload;
    try {
      // RFC 9068 §4: the type tells an access token from an ID token, the audience says that it is meant for us.
      const { issuer, audience } = options;
      claims = (await jwtVerify(token, keys, { issuer, audience, typ: "at+jwt", clockTolerance: 5 })).payload;
    } catch (error) {
      if (!(error instanceof errors.JOSEError) || error instanceof errors.JWKSTimeout) {
        process.stderr.write(`keys of ${options.jwksUrl}: ${reasonOf(error)}\n`);
        return sendJson(response, 503, { error: "the keys of the authorization server cannot be read" });
      }
      return challenge(response, 401, `error="invalid_token", error_description="${error.code}"`);
    }
    const scope = typeof claims["scope"] === "string" ? claims["scope"].split(" ") : [];
    if (!scope.includes(neededScope)) {
      return challenge(response, 403, `error="insufficient_scope", scope="${neededScope}"`);
    }
    sendJson(response, 200, { owner: claims.sub, orders: ordersOf(claims.sub ?? "") });
  };
}

function bearerToken(request: IncomingMessage): string | undefined {
  return /^bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
}

/** RFC 6750 §3. */
function challenge(response: ServerResponse, status: number, error: string): void {
  response.setHeader("www-authenticate", error === "" ? 'Bearer realm="orders"' : `Bearer realm="orders", ${error}`);
  sendJson(response, status, { error: status === 403 ? "insufficient_scope" : "invalid_token" });
}

const goods = [
  ["Lighthouse Glasses", "282.00"],
  ["Harbour Lamp", "48.50"],
  ["Pocket Compass", "19.90"],
] as const;

/** Always the same orders for the same owner. */
function ordersOf(owner: string): readonly object[] {
  const first = Array.from(owner).reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  return goods.map(([item, price], index) => ({ id: 1000 + ((first * 7 + index * 13) % 9000), item, price }));
}
