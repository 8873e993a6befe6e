// The endpoints around the grant: userinfo, introspection, revocation, logout, metadata, and who may call them from a
// browser application.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeJwt, decodeProtectedHeader } from "jose";
import type { Browser } from "../testing/browser.ts";
import {
  answerOf,
  basic,
  testChallenge,
  testPassword,
  testRedirectUri,
  testSecret,
  testServer,
  testVerifier,
} from "../testing/test-server.ts";
import type { TestServer } from "../testing/test-server.ts";

const request = {
  client_id: "app",
  response_type: "code",
  redirect_uri: testRedirectUri,
  scope: "openid profile offline_access",
};
const app = { authorization: basic("app", testSecret) };

async function tokensFor(server: TestServer, browser: Browser, scope = request.scope): Promise<Record<string, string>> {
  const answer = await server.authorize(browser, { ...request, scope, nonce: "n-1" });
  const form = { grant_type: "authorization_code", code: answer.get("code")!, redirect_uri: testRedirectUri };
  return (await server.post("/token", form, app)).json as Record<string, string>;
}

async function get(
  server: TestServer,
  path: string,
  headers: Record<string, string> = {},
): ReturnType<TestServer["send"]> {
  return server.send({ method: "GET", url: server.issuer + path, headers, body: undefined });
}

test("an ID token and an access token carry what their standards ask for", async (t) => {
  const server = await testServer(t);
  await server.client();
  const subject = await server.user();
  const tokens = await tokensFor(server, server.browser());
  const id = decodeJwt(tokens["id_token"]!);
  const seconds = Math.floor(server.clock.nowMs / 1000);
  const { at_hash: atHash, sid, ...rest } = id;
  assert.match(String(atHash), /^[\w-]{22}$/);
  assert.match(String(sid), /^[\w-]{22}$/);
  assert.deepEqual(rest, {
    iss: server.issuer,
    sub: subject,
    aud: "app",
    iat: seconds,
    exp: seconds + 300,
    auth_time: seconds,
    nonce: "n-1",
    acr: "urn:oasis:names:tc:SAML:2.0:ac:classes:Password",
    amr: ["pwd"],
  });
  const header = decodeProtectedHeader(tokens["access_token"]!);
  assert.equal(header.typ, "JWT");
  assert.equal(header.alg, "RS256");
  const { jti, ...access } = decodeJwt(tokens["access_token"]!);
  assert.ok(String(jti).length > 22);
  assert.deepEqual(access, {
    iss: server.issuer,
    sub: subject,
    aud: server.issuer,
    client_id: "app",
    scope: "openid profile offline_access",
    iat: seconds,
    exp: seconds + 300,
    auth_time: seconds,
  });
});

test("userinfo answers a token with openid, and says by RFC 6750 why not", async (t) => {
  const server = await testServer(t);
  await server.client();
  const subject = await server.user();
  const browser = server.browser();
  const token = (await tokensFor(server, browser))["access_token"]!;
  const good = await get(server, "/userinfo", { authorization: `Bearer ${token}` });
  assert.deepEqual(JSON.parse(good.body), { sub: subject, name: "ann", preferred_username: "ann" });
  assert.equal((await server.post("/userinfo", { access_token: token })).status, 200);
  const plain = (await tokensFor(server, browser, "profile"))["access_token"]!;
  const cases = [
    { name: "no token", headers: {}, status: 401, challenge: /^Bearer realm="[^"]+"$/ },
    { name: "malformed", headers: { authorization: "Bearer a b" }, status: 400, challenge: /invalid_request/ },
    { name: "unknown", headers: { authorization: "Bearer abc" }, status: 401, challenge: /invalid_token/ },
    {
      name: "without openid",
      headers: { authorization: `Bearer ${plain}` },
      status: 403,
      challenge: /insufficient_scope/,
    },
    {
      name: "ID token",
      headers: { authorization: `Bearer ${(await tokensFor(server, browser))["id_token"]!}` },
      status: 401,
      challenge: /invalid_token/,
    },
  ];
  for (const { name, headers, status, challenge } of cases) {
    const answer = await get(server, "/userinfo", headers);
    assert.equal(answer.status, status, name);
    assert.match(String(answer.headers["www-authenticate"]), challenge, name);
  }
  server.clock.nowMs += 300_000;
  assert.equal((await get(server, "/userinfo", { authorization: `Bearer ${token}` })).status, 401, "expired");
});

test("introspection tells a token's own client and its resource server, and nobody else", async (t) => {
  const server = await testServer(t);
  const api = "https://api.example/a";
  await server.client({ audiences: [api] });
  await server.client({ id: "api", grants: [], redirectUris: [], resourceServerFor: [api] });
  await server.client({ id: "other" });
  await server.client({ id: "native", isPublic: true });
  const subject = await server.user();
  const tokens = await tokensFor(server, server.browser());
  const ask = (token: string, id: string): ReturnType<TestServer["post"]> =>
    server.post("/introspect", { token }, { authorization: basic(id, testSecret) });
  for (const id of ["app", "api"]) {
    const { json } = await ask(tokens["access_token"]!, id);
    assert.equal(json["active"], true, id);
    assert.equal(json["sub"], subject);
    assert.equal(json["username"], "ann");
    assert.deepEqual(json["aud"], [api, server.issuer]);
    assert.equal(json["token_type"], "bearer");
  }
  assert.deepEqual((await ask(tokens["access_token"]!, "other")).json, { active: false });
  assert.equal((await ask(tokens["refresh_token"]!, "app")).json["active"], true);
  assert.deepEqual((await ask(tokens["refresh_token"]!, "api")).json, { active: false });
  assert.deepEqual((await ask(tokens["id_token"]!, "app")).json, { active: false });
  assert.deepEqual((await ask("nonsense", "app")).json, { active: false });
  const anonymous = await server.post("/introspect", { token: tokens["access_token"]!, client_id: "native" });
  assert.equal(anonymous.status, 401);
  assert.match(String(anonymous.headers["www-authenticate"]), /^Basic/);
  assert.equal((await server.post("/introspect", {}, app)).json["error"], "invalid_request");
});

test("revocation ends a refresh token with its family, an access token alone, and nothing of others", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.client({ id: "other" });
  await server.client({ id: "opaque", opaque: true });
  await server.user();
  const browser = server.browser();
  const isActive = async (token: string): Promise<unknown> =>
    (await server.post("/introspect", { token }, app)).json["active"];
  const first = await tokensFor(server, browser);
  const foreign = await server.post(
    "/revoke",
    { token: first["refresh_token"]! },
    { authorization: basic("other", testSecret) },
  );
  assert.equal(foreign.json["error"], "invalid_request");
  assert.equal(await isActive(first["access_token"]!), true);
  assert.equal((await server.post("/revoke", { token: first["access_token"]! }, app)).status, 200);
  assert.equal(await isActive(first["access_token"]!), false);
  assert.equal(await isActive(first["refresh_token"]!), true);
  const second = await tokensFor(server, browser);
  assert.equal((await server.post("/revoke", { token: second["refresh_token"]! }, app)).status, 200);
  assert.equal(await isActive(second["access_token"]!), false);
  assert.equal((await server.post("/revoke", { token: "unknown" }, app)).status, 200);
  assert.equal((await server.post("/revoke", { token: "x" }, { authorization: basic("app", "wrong") })).status, 401);
});

test("opaque access tokens work like JWTs and are no JWTs", async (t) => {
  const server = await testServer(t);
  await server.client({ opaque: true });
  const subject = await server.user();
  const tokens = await tokensFor(server, server.browser());
  const token = tokens["access_token"]!;
  assert.match(token, /^[\w-]{43}$/);
  const info = await get(server, "/userinfo", { authorization: `Bearer ${token}` });
  assert.equal((JSON.parse(info.body) as Record<string, unknown>)["sub"], subject);
  assert.equal((await server.post("/introspect", { token }, app)).json["active"], true);
  await server.post("/revoke", { token }, app);
  assert.equal((await server.post("/introspect", { token }, app)).json["active"], false);
});

test("logout: an ID token of this session signs out, everything else asks or is refused", async (t) => {
  const server = await testServer(t);
  const bye = "https://client.example/bye";
  await server.client({ postLogoutRedirectUris: [bye] });
  await server.user();
  const browser = server.browser();
  const hint = (await tokensFor(server, browser))["id_token"]!;
  const url = (more: Record<string, string>): string =>
    `${server.issuer}/logout?${new URLSearchParams(more).toString()}`;
  const refused = [
    { name: "unregistered address", more: { id_token_hint: hint, post_logout_redirect_uri: "https://evil.example" } },
    { name: "address without client", more: { post_logout_redirect_uri: bye } },
    { name: "forged hint", more: { id_token_hint: "a.b.c" } },
    { name: "other client", more: { id_token_hint: hint, client_id: "other" } },
  ];
  for (const { name, more } of refused) {
    const page = await browser.open(url(more));
    assert.equal(page.status, 400, name);
    assert.equal(page.location, undefined, name);
  }
  const question = await browser.open(url({ client_id: "app", post_logout_redirect_uri: bye, state: "s1" }));
  assert.match(question.body, /You are signed in as <bdi>ann/);
  const stayed = await browser.submit(question, /\/logout\/confirm$/, { decision: "stay" });
  assert.match(stayed.body, /still signed in/);
  const forged = await browser.request("POST", `${server.issuer}/logout/confirm`, "decision=out");
  assert.match(forged.body, /You are signed in as <bdi>ann/, "without the token it asks again");
  const left = await browser.submit(question, /\/logout\/confirm$/, { decision: "out" });
  assert.equal(left.location, `${bye}?state=s1`);
  const again = (await tokensFor(server, browser))["id_token"]!;
  const direct = await browser.open(url({ id_token_hint: again, post_logout_redirect_uri: bye }));
  assert.equal(direct.location, bye);
  const silent = await browser.open(server.authorizeUrl({ ...request, prompt: "none" }));
  assert.equal(answerOf(silent).get("error"), "login_required");
});

test("CORS: metadata for all, token and userinfo for registered browser applications, cookies for none", async (t) => {
  const server = await testServer(t);
  const origin = "https://spa.example";
  await server.client({ id: "spa", isPublic: true, origins: [origin] });
  await server.user();
  for (const path of ["/jwks", "/.well-known/openid-configuration"]) {
    assert.equal(
      (await get(server, path, { origin: "https://any.example" })).headers["access-control-allow-origin"],
      "*",
    );
  }
  const preflight = await server.send({
    method: "OPTIONS",
    url: `${server.issuer}/token`,
    headers: { origin, "access-control-request-method": "POST" },
    body: undefined,
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers["access-control-allow-origin"], origin);
  assert.equal(preflight.headers["access-control-allow-credentials"], undefined);
  const parameters = { ...request, ...testChallenge, client_id: "spa", scope: "openid" };
  const code = (await server.authorize(server.browser(), parameters)).get("code")!;
  const form = {
    grant_type: "authorization_code",
    code,
    redirect_uri: testRedirectUri,
    client_id: "spa",
    code_verifier: testVerifier,
  };
  const token = await server.post("/token", form, { origin });
  assert.equal(token.status, 200);
  assert.equal(token.headers["access-control-allow-origin"], origin);
  const stranger = await server.post("/token", form, { origin: "https://evil.example" });
  assert.equal(stranger.headers["access-control-allow-origin"], undefined);
  const introspection = await server.post("/introspect", { token: "x" }, { ...app, origin });
  assert.equal(introspection.headers["access-control-allow-origin"], undefined);
});

test("metadata names only addresses of the issuer, whatever Host says, also for an issuer with a path", async (t) => {
  const server = await testServer(t, { flags: ["--issuer", "https://auth.example/oauth2"] });
  for (const path of ["/oauth2/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/oauth2"]) {
    const answer = await server.send({
      method: "GET",
      url: `https://auth.example${path}`,
      headers: {},
      body: undefined,
    });
    const document = JSON.parse(answer.body) as Record<string, unknown>;
    const addresses = Object.entries(document).filter(([name]) => /_endpoint$|_uri$|^issuer$/.test(name));
    assert.ok(addresses.length >= 8);
    for (const [name, value] of addresses) assert.match(String(value), /^https:\/\/auth\.example\/oauth2/, name);
    assert.equal(document["request_uri_parameter_supported"], false);
  }
  assert.equal(
    (await server.send({ method: "GET", url: "https://auth.example/authorize", headers: {}, body: undefined })).status,
    404,
  );
  await server.client();
  const page = await server.browser().open(server.authorizeUrl(request));
  assert.equal(page.status, 200);
});

test("cookies are host-only, HttpOnly, Lax, of the issuer's path, and Secure under https", async (t) => {
  const cases = [
    {
      issuer: "https://auth.example/oauth2",
      pattern: /^__Secure-tulle_browser=[\w-]{43}; Path=\/oauth2; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/,
    },
    {
      issuer: "https://auth.example",
      pattern: /^__Host-tulle_browser=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/,
    },
    {
      issuer: "http://localhost:9400",
      pattern: /^tulle_browser=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/,
    },
  ];
  for (const { issuer, pattern } of cases) {
    const server = await testServer(t, { flags: ["--issuer", issuer] });
    await server.client();
    const first = await server.browser().open(server.authorizeUrl(request));
    assert.equal(first.status, 200);
    assert.match(String(first.headers["set-cookie"]), pattern);
  }
});

test("a sign-in makes a new session, and a planted one is worth nothing", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.user();
  const browser = server.browser();
  browser.cookies.set("tulle_session", "p".repeat(43));
  await server.authorize(browser, request);
  const first = browser.cookies.get("tulle_session")!;
  assert.notEqual(first, "p".repeat(43));
  await server.authorize(browser, { ...request, prompt: "login" });
  const second = browser.cookies.get("tulle_session")!;
  assert.notEqual(second, first);
  const old = server.browser();
  old.cookies.set("tulle_session", first);
  assert.equal(
    answerOf(await old.open(server.authorizeUrl({ ...request, prompt: "none" }))).get("error"),
    "login_required",
  );
});

test("sessions end by idleness and by age; disabled users and clients are out at once", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.user();
  const browser = server.browser();
  const silent = async (): Promise<string | null> =>
    answerOf(await browser.open(server.authorizeUrl({ ...request, prompt: "none" }))).get("error");
  await server.authorize(browser, request);
  for (let day = 0; day < 6; day += 1) {
    server.clock.nowMs += 86_000_000;
    assert.equal(await silent(), null, `day ${day}: in use`);
  }
  server.clock.nowMs += 86_400_001;
  assert.equal(await silent(), "login_required", "idle for a day");
  await server.authorize(browser, request);
  await server.context.database.transaction((transaction) =>
    transaction.run("UPDATE users SET disabled_at = ? WHERE name = ?", [1, "ann"]),
  );
  assert.equal(await silent(), "login_required");
  const login = await server.browser().open(server.authorizeUrl(request));
  assert.match(login.body, /name="password"/);
  await server.context.database.transaction((transaction) =>
    transaction.run("UPDATE clients SET disabled_at = ?", [1]),
  );
  assert.equal((await browser.open(server.authorizeUrl(request))).status, 400);
  assert.equal((await server.post("/token", { grant_type: "refresh_token" }, app)).json["error"], "invalid_client");
});

test("the account page changes nothing for forms that are not its own", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.user();
  const browser = server.browser();
  await server.authorize(browser, request);
  const account = await browser.open(`${server.issuer}/account`);
  const action = /action="([^"]+\/revoke)"/.exec(account.body)![1]!;
  const withoutToken = await browser.request("POST", action, "");
  assert.equal(withoutToken.status, 403);
  const crossSite = await browser.request("POST", action, "csrf=x", { "sec-fetch-site": "cross-site" });
  assert.equal(crossSite.status, 403);
  const nullOrigin = await browser.request("POST", action, "csrf=x", { origin: "null" });
  assert.equal(nullOrigin.status, 403);
  const intact = await browser.open(`${server.issuer}/account`);
  assert.match(intact.body, /Take back/);
  const short = await browser.submit(intact, /\/password$/, { current: testPassword, new: "short" });
  assert.match(short.body, /at least 8 characters/);
  const wrong = await browser.submit(intact, /\/password$/, { current: "wrong password", new: "long enough" });
  assert.match(wrong.body, /current password is not right/);
});

test("health, readiness and metrics; metrics for this machine only", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.post("/token", { grant_type: "magic" }, app);
  assert.equal((await get(server, "/healthz")).status, 200);
  assert.equal((await get(server, "/readyz")).status, 200);
  const metrics = await get(server, "/metrics");
  assert.match(metrics.body, /^tulle_auth_refusals_total\{endpoint="token",error="unsupported_grant_type"\} 1$/m);
  assert.match(metrics.body, /^tulle_auth_requests_total\{endpoint="token",status="400"\} 1$/m);
  assert.match(metrics.body, /^process_resident_memory_bytes [1-9]/m);
  assert.equal(metrics.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
  const open = await get(server, "/metrics", { accept: "application/openmetrics-text;version=1.0.0,*/*;q=0.1" });
  assert.equal(open.headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8");
  assert.match(open.body, /^# TYPE tulle_auth_refusals counter$[^]*^tulle_auth_refusals_total\{[^]*\n# EOF\n$/m);
  assert.equal((await get(server, "/metrics", { "x-forwarded-for": "203.0.113.1" })).status, 404);
  assert.equal((await get(server, "/nothing")).status, 404);
  const wrongMethod = await server.send({
    method: "DELETE",
    url: `${server.issuer}/userinfo`,
    headers: {},
    body: undefined,
  });
  assert.equal(wrongMethod.status, 405);
  assert.equal(wrongMethod.headers["allow"], "GET, HEAD, OPTIONS, POST");
  // The method is right, the spelling is not.
  assert.equal((await get(server, "/userinfo/")).status, 404);
});
