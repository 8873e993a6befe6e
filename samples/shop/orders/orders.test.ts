// Which tokens the orders service accepts, and what it says to the others.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { createAppServer, sendJson, type Handler } from "../serve.ts";
import { createOrders } from "./orders.ts";

async function listen(t: TestContext, handler: Handler): Promise<string> {
  const server = createAppServer(handler).listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const issuer = "http://localhost:8080/oauth2";
const audience = "http://localhost:8080/api/orders";

const settings = { issuer, audience, userInfoUrl: "http://127.0.0.1:1/userinfo", signOutPath: "/sign-out" };

interface TokenParts {
  readonly typ?: string;
  readonly iss?: string;
  readonly aud?: string;
  readonly scope?: string;
  readonly expiresIn?: string;
}

test("tokens that are refused, and the one that is accepted", async (t) => {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const stranger = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid: "one", alg: "ES256" };
  const jwks = await listen(t, (_request, response) => sendJson(response, 200, { keys: [jwk] }));
  const base = await listen(t, createOrders({ ...settings, jwksUrl: `${jwks}/jwks` }));
  const sign = (parts: TokenParts, key = privateKey): Promise<string> =>
    new SignJWT({ scope: parts.scope ?? "openid orders.read" })
      .setProtectedHeader({ alg: "ES256", kid: "one", typ: parts.typ ?? "at+jwt" })
      .setSubject("usr_1")
      .setIssuer(parts.iss ?? issuer)
      .setAudience(parts.aud ?? audience)
      .setIssuedAt()
      .setExpirationTime(parts.expiresIn ?? "5m")
      .sign(key);
  const cases: readonly { name: string; token?: string; expected: number; challenge?: RegExp }[] = [
    { name: "no token", expected: 401, challenge: /^Bearer realm="orders"$/ },
    { name: "a good token", token: await sign({}), expected: 200 },
    { name: "an ID token", token: await sign({ typ: "JWT" }), expected: 401, challenge: /invalid_token/ },
    { name: "another audience", token: await sign({ aud: "https://other.example" }), expected: 401 },
    { name: "another issuer", token: await sign({ iss: "https://other.example" }), expected: 401 },
    { name: "an expired token", token: await sign({ expiresIn: "-1m" }), expected: 401, challenge: /ERR_JWT_EXPIRED/ },
    { name: "another key", token: await sign({}, stranger.privateKey), expected: 401 },
    { name: "no JWT at all", token: "abc", expected: 401 },
    { name: "no scope for it", token: await sign({ scope: "openid" }), expected: 403, challenge: /insufficient_scope/ },
  ];
  for (const { name, token, expected, challenge } of cases) {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(`${base}/api/orders`, { headers });
    assert.equal(answer.status, expected, name);
    if (challenge !== undefined) assert.match(answer.headers.get("www-authenticate") ?? "", challenge, name);
    if (expected === 200) assert.equal(((await answer.json()) as { orders: unknown[] }).orders.length, 3);
  }
});

test("keys that cannot be read are the service's trouble, not the token's", async (t) => {
  const gone = await listen(t, (request) => void request.socket.destroy());
  const base = await listen(t, createOrders({ ...settings, jwksUrl: `${gone}/jwks` }));
  const { privateKey } = await generateKeyPair("ES256");
  const token = await new SignJWT({}).setProtectedHeader({ alg: "ES256", typ: "at+jwt" }).sign(privateKey);
  const answer = await fetch(`${base}/api/orders`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 503);
});
