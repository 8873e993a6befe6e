// A protected resource: it shows orders to whoever brings an access token that was meant for it, with the scope for it.
import type { IncomingMessage, ServerResponse } from "node:http";
import { createRemoteJWKSet, errors, jwtVerify } from "jose";
import type { JWTPayload } from "jose";
import type { Handler } from "../serve.ts";
import { headersToForward, methodIs, pathOf, reasonOf, sendJson, sendText } from "../serve.ts";
import { accountPage, type Order } from "./account-page.ts";

export interface OrdersOptions {
  /** `iss` of acceptable tokens. */
  readonly issuer: string;
  /** `aud` of acceptable tokens: this service. */
  readonly audience: string;
  readonly jwksUrl: string;
  /** Where the authorization server tells who somebody is (OpenID Connect Core §5.3). */
  readonly userInfoUrl: string;
  /** Opening it signs out at the gateway. */
  readonly signOutPath: string;
}

const neededScope = "orders.read";

export function createOrders(options: OrdersOptions): Handler {
  const keys = createRemoteJWKSet(new URL(options.jwksUrl), { cooldownDuration: 1000 });
  return async (request, response) => {
    const path = pathOf(request);
    if (path === "/health") return sendText(response, 200, "ok\n");
    if (path !== "/api/orders" && path !== "/account")
      return sendJson(response, 404, { error: `no such path: ${path}` });
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
    const owner = claims.sub ?? "";
    if (path === "/api/orders") return sendJson(response, 200, { owner, orders: ordersOf(owner) });
    const name = await nameOf(request, token, options.userInfoUrl);
    sendHtml(response, accountPage(name ?? owner, ordersOf(owner), options.signOutPath));
  };
}

/** Undefined when it cannot be had: the page goes without. */
async function nameOf(request: IncomingMessage, token: string, userInfoUrl: string): Promise<string | undefined> {
  try {
    const headers = { ...headersToForward(request), authorization: `Bearer ${token}` };
    const answer = await fetch(userInfoUrl, { headers, signal: AbortSignal.timeout(5000) });
    const { name } = (await answer.json()) as { readonly name?: unknown };
    return typeof name === "string" ? name : undefined;
  } catch (error) {
    process.stderr.write(`${userInfoUrl}: ${reasonOf(error)}\n`);
    return undefined;
  }
}

function sendHtml(response: ServerResponse, html: string): void {
  const bytes = Buffer.from(html);
  response.setHeader("cache-control", "no-store");
  response.writeHead(200, { "content-type": "text/html; charset=utf-8", "content-length": bytes.length });
  response.end(bytes);
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
function ordersOf(owner: string): readonly Order[] {
  const first = Array.from(owner).reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  return goods.map(([item, price], index) => ({ id: 1000 + ((first * 7 + index * 13) % 9000), item, price }));
}
