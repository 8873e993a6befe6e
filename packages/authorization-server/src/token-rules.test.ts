// One test for each of the rules 19 to 37 that RFC 6749, 7636, 9207 and 9700 set for this server, named after it: PKCE
// and the token endpoint. What each refusal looks like in detail is tested beside the checks.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  basic,
  testChallenge,
  testPassword,
  testRedirectUri,
  testRequest as request,
  testSecret,
  testServer,
  testVerifier,
} from "./testing/test-server.ts";
import { answerOf } from "./testing/test-server.ts";
import type { TestServer } from "./testing/test-server.ts";
import type { Browser } from "./testing/browser.ts";
import { createClient } from "./admin/clients.ts";
import { ready, newCode, redeem, app } from "./testing/signed-in-server.ts";

test("rule 19: PKCE with S256 is supported, needed by public clients, and advertised", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  await server.client({ id: "native", isPublic: true });
  const without = await server.authorize(browser, { ...request, client_id: "native" });
  assert.equal(without.get("error"), "invalid_request");
  const code = (await server.authorize(browser, { ...request, ...testChallenge, client_id: "native" })).get("code")!;
  const token = await server.post("/token", redeem(code, { client_id: "native", code_verifier: testVerifier }));
  assert.equal(token.status, 200);
  const metadata = await server.send({
    method: "GET",
    url: `${server.issuer}/.well-known/openid-configuration`,
    headers: {},
    body: undefined,
  });
  assert.deepEqual((JSON.parse(metadata.body) as Record<string, unknown>)["code_challenge_methods_supported"], [
    "S256",
  ]);
});

test("rule 20: a missing challenge or an unsupported method is invalid_request", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  await server.client({ id: "careful", requirePkce: true });
  const challenge = testChallenge["code_challenge"]!;
  const cases: ReadonlyArray<Record<string, string>> = [
    { client_id: "careful" },
    { code_challenge: challenge },
    { code_challenge: testVerifier, code_challenge_method: "plain" },
    { code_challenge: "short", code_challenge_method: "S256" },
    { code_challenge_method: "S256" },
  ];
  for (const more of cases) {
    assert.equal(
      (await server.authorize(browser, { ...request, ...more })).get("error"),
      "invalid_request",
      JSON.stringify(more),
    );
  }
});

test("rule 21: the verifier has 43 to 128 unreserved characters and matches", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const code = await newCode(server, browser, testChallenge);
  for (const verifier of [undefined, "a".repeat(42), "a".repeat(129), `${"a".repeat(42)}!`, "b".repeat(43)]) {
    const more = verifier === undefined ? {} : { code_verifier: verifier };
    const refused = await server.post("/token", redeem(code, more), app);
    assert.equal(refused.json["error"], "invalid_grant", String(verifier));
  }
});

test("rule 22: a verifier for a code without challenge is invalid_grant", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const refused = await server.post(
    "/token",
    redeem(await newCode(server, browser), { code_verifier: testVerifier }),
    app,
  );
  assert.equal(refused.json["error"], "invalid_grant");
});

test("rule 23: the token endpoint takes POST, and no secrets in its address", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const code = await newCode(server, browser);
  const get = await server.send({
    method: "GET",
    url: `${server.issuer}/token?grant_type=authorization_code`,
    headers: app,
    body: undefined,
  });
  assert.equal(get.status, 400);
  assert.equal((JSON.parse(get.body) as Record<string, unknown>)["error"], "invalid_request");
  const inQuery = await server.post(`/token?client_secret=${testSecret}`, redeem(code), app);
  assert.equal(inQuery.json["error"], "invalid_request");
  assert.equal((await server.post("/token", redeem(code), app)).status, 200);
});

test("rule 24: Basic is supported with both halves form-urlencoded", async (t) => {
  const server = await testServer(t);
  await server.user();
  const secret = `${"s".repeat(32)}+/=: %ü`;
  await server.client({ secret });
  const browser = server.browser();
  const encode = (text: string): string => new URLSearchParams([["", text]]).toString().slice(1);
  const header = `Basic ${Buffer.from(`${encode("app")}:${encode(secret)}`).toString("base64")}`;
  const token = await server.post("/token", redeem(await newCode(server, browser)), { authorization: header });
  assert.equal(token.status, 200);
});

test("rule 25: one authentication method a request", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const code = await newCode(server, browser);
  const both = await server.post("/token", redeem(code, { client_id: "app", client_secret: testSecret }), app);
  assert.equal(both.json["error"], "invalid_request");
  const assertion = await server.post("/token", redeem(code, { client_assertion: "x" }), app);
  assert.equal(assertion.json["error"], "invalid_request");
  const mismatch = await server.post("/token", redeem(code, { client_id: "other" }), app);
  assert.equal(mismatch.json["error"], "invalid_request");
  const matching = await server.post("/token", redeem(code, { client_id: "app" }), app);
  assert.equal(matching.status, 200);
});

test("rule 26: confidential clients authenticate, supplied credentials are verified, an id alone is nothing", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  await server.client({ id: "native", isPublic: true });
  const code = await newCode(server, browser);
  const cases: ReadonlyArray<readonly [string, Record<string, string>, Record<string, string>]> = [
    ["id alone", { client_id: "app" }, {}],
    ["nothing", {}, {}],
    ["wrong secret", { client_id: "app", client_secret: "x".repeat(43) }, {}],
    ["wrong Basic", {}, { authorization: basic("app", "x".repeat(43)) }],
    ["empty Basic secret", {}, { authorization: basic("app", "") }],
    ["unknown client", {}, { authorization: basic("nobody", testSecret) }],
    ["public client with a secret", { client_id: "native", client_secret: testSecret }, {}],
    ["assertion", { client_id: "app", client_assertion: "x" }, {}],
    ["Bearer", {}, { authorization: "Bearer x" }],
  ];
  for (const [name, form, headers] of cases) {
    const refused = await server.post("/token", redeem(code, form), headers);
    assert.equal(refused.json["error"], "invalid_client", name);
    assert.equal(refused.status, 400, name);
  }
  const good = await server.post("/token", redeem(code, { client_id: "app", client_secret: testSecret }));
  assert.equal(good.status, 200);
});

test("rule 27: guessing of client secrets and of passwords is slowed down", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const guess = (): ReturnType<TestServer["post"]> =>
    server.post("/token", redeem("x"), { authorization: basic("app", "x".repeat(43)) });
  for (let count = 0; count < 10; count += 1) assert.equal((await guess()).status, 400);
  const slowed = await guess();
  assert.equal(slowed.status, 429);
  assert.equal(slowed.headers["retry-after"], "1");
  server.clock.nowMs += 1000;
  assert.equal((await server.post("/token", redeem(await newCode(server, browser)), app)).status, 200);
  const other = server.browser();
  let page = await other.open(server.authorizeUrl(request));
  for (let count = 0; count < 5; count += 1) {
    page = await other.signIn(page, "ann", "wrong password");
    assert.equal(page.status, 400);
  }
  const throttled = await other.signIn(page, "ann", testPassword);
  assert.equal(throttled.status, 429);
  server.clock.nowMs += 2000;
  const after = await other.signIn(throttled, "ann", testPassword);
  assert.equal(answerOf(after).has("code"), true);
});

test("rule 28: foreign, unknown and expired grants, disallowed and unknown grant types have their own errors", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  await server.client({ id: "machine", grants: ["client_credentials"], scope: "a" });
  const machine = { authorization: basic("machine", testSecret) };
  const cases: ReadonlyArray<readonly [string, Record<string, string>, Record<string, string>, string]> = [
    ["unknown code", redeem("unknown"), app, "invalid_grant"],
    ["foreign grant type", redeem("unknown"), machine, "unauthorized_client"],
    ["unknown grant type", { grant_type: "magic" }, app, "unsupported_grant_type"],
    ["no grant type", { code: "x" }, app, "invalid_request"],
    ["no code", { grant_type: "authorization_code" }, app, "invalid_request"],
    ["no refresh token", { grant_type: "refresh_token" }, app, "invalid_request"],
    ["unknown refresh token", { grant_type: "refresh_token", refresh_token: "x" }, app, "invalid_grant"],
    ["scope of another", { grant_type: "client_credentials", scope: "b" }, machine, "invalid_scope"],
  ];
  for (const [name, form, headers, error] of cases) {
    const refused = await server.post("/token", form, headers);
    assert.equal(refused.json["error"], error, name);
    assert.equal(refused.status, 400, name);
  }
  const repeated = await server.post("/token", `grant_type=authorization_code&code=x&code=x`, app);
  assert.equal(repeated.json["error"], "invalid_request");
  const unreadable = await server.post("/token", "grant_type=authorization_code&code=%ff", app);
  assert.equal(unreadable.json["error"], "invalid_request");
  const notAllowed = await server.authorize(browser, {
    ...request,
    client_id: "machine",
    redirect_uri: testRedirectUri,
  });
  assert.equal(notAllowed.get("error"), "unauthorized_client");
});

test("rule 29: a token answer has its fields and is kept by no cache", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const token = await server.post("/token", redeem(await newCode(server, browser)), app);
  assert.equal(token.status, 200);
  assert.equal(typeof token.json["access_token"], "string");
  assert.equal(token.json["token_type"], "bearer");
  assert.equal(token.json["expires_in"], 300);
  for (const answer of [token, await server.post("/token", {}, app)]) {
    assert.equal(answer.headers["content-type"], "application/json;charset=UTF-8");
    assert.equal(answer.headers["cache-control"], "no-store");
    assert.equal(answer.headers["pragma"], "no-cache");
  }
});

test("rule 30: invalid_client after Basic is 401 with a challenge in strict mode, 400 as the seed says otherwise", async (t) => {
  const wrong = { authorization: basic("app", "x".repeat(43)) };
  const lenient = await testServer(t);
  await lenient.client();
  const asSeed = await lenient.post("/token", redeem("x"), wrong);
  assert.equal(asSeed.status, 400);
  assert.equal(asSeed.headers["www-authenticate"], undefined);
  const strict = await testServer(t, { flags: ["--strict"] });
  await strict.client();
  const asRfc = await strict.post("/token", redeem("x"), wrong);
  assert.equal(asRfc.status, 401);
  assert.match(String(asRfc.headers["www-authenticate"]), /^Basic realm="/);
  const inBody = await strict.post("/token", redeem("x", { client_id: "app", client_secret: "wrong" }));
  assert.equal(inBody.status, 400);
});

async function firstTokens(
  server: TestServer,
  browser: Browser,
  scope = "profile email offline_access",
): Promise<string> {
  const code = await newCode(server, browser, { scope });
  const token = await server.post("/token", redeem(code), app);
  return String(token.json["refresh_token"]);
}

function refreshForm(token: string, more: Record<string, string> = {}): Record<string, string> {
  return { grant_type: "refresh_token", refresh_token: token, ...more };
}

test("rule 31: a refresh is bound to client, scope and resource, and widens nothing", async (t) => {
  const server = await testServer(t);
  await server.user();
  await server.client({ audiences: ["https://api.example/a", "https://api.example/b"] });
  await server.client({ id: "other" });
  const browser = server.browser();
  const code = await newCode(server, browser, {
    scope: "profile email offline_access",
    resource: "https://api.example/a",
  });
  let token = String((await server.post("/token", redeem(code), app)).json["refresh_token"]);
  const foreign = await server.post("/token", refreshForm(token), { authorization: basic("other", testSecret) });
  assert.equal(foreign.json["error"], "invalid_grant");
  assert.equal(
    (await server.post("/token", refreshForm(token, { scope: "openid" }), app)).json["error"],
    "invalid_scope",
  );
  const wide = await server.post("/token", refreshForm(token, { resource: "https://api.example/b" }), app);
  assert.equal(wide.json["error"], "invalid_target");
  const narrow = await server.post("/token", refreshForm(token, { scope: "profile" }), app);
  assert.equal(narrow.status, 200);
  token = String(narrow.json["refresh_token"]);
  const whole = await server.post("/token", refreshForm(token), app);
  const inspected = await server.post("/introspect", { token: String(whole.json["access_token"]) }, app);
  assert.equal(inspected.json["scope"], "profile email offline_access");
  assert.equal(inspected.json["aud"], "https://api.example/a");
});

test("rule 32: confidential clients authenticate to refresh, and refresh tokens come only where they are asked for", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server, "profile email offline_access");
  const token = await firstTokens(server, browser);
  const alone = await server.post("/token", refreshForm(token, { client_id: "app" }));
  assert.equal(alone.json["error"], "invalid_client");
  const online = await server.post("/token", redeem(await newCode(server, browser)), app);
  assert.equal("refresh_token" in online.json, false);
});

test("rule 33: refresh tokens rotate, expire, and reuse ends the family", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server, "profile email offline_access");
  const first = await firstTokens(server, browser);
  const second = await server.post("/token", refreshForm(first), app);
  const repeated = await server.post("/token", refreshForm(first), app);
  assert.equal(repeated.json["refresh_token"], second.json["refresh_token"], "the same successor within ten seconds");
  server.clock.nowMs += 10_001;
  assert.equal((await server.post("/token", refreshForm(first), app)).json["error"], "invalid_grant");
  const family = await server.post("/token", refreshForm(String(second.json["refresh_token"])), app);
  assert.equal(family.json["error"], "invalid_grant");
  const other = await firstTokens(server, browser);
  const next = await server.post("/token", refreshForm(other), app);
  assert.equal((await server.post("/token", refreshForm(String(next.json["refresh_token"])), app)).status, 200);
  const usedSuccessor = await server.post("/token", refreshForm(other), app);
  assert.equal(usedSuccessor.json["error"], "invalid_grant", "the grace ends when the successor is used");
  const old = await firstTokens(server, browser);
  server.clock.nowMs += 31 * 86_400_000;
  assert.equal((await server.post("/token", refreshForm(old), app)).json["error"], "invalid_grant");
});

test("rule 34: no code, token, secret or password lies readable in the store", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server, "profile email offline_access");
  const { readFileSync, readdirSync } = await import("node:fs");
  const code = await newCode(server, browser, { scope: "profile offline_access" });
  const token = await server.post("/token", redeem(code), app);
  const next = await server.post("/token", refreshForm(String(token.json["refresh_token"])), app);
  await server.audit();
  const secrets = [
    code,
    testSecret,
    testPassword,
    String(token.json["access_token"]),
    String(token.json["refresh_token"]),
    String(next.json["refresh_token"]),
    ...browser.cookies.values(),
    "PRIVATE KEY",
  ];
  for (const file of readdirSync(server.dataDir)) {
    const content = readFileSync(`${server.dataDir}/${file}`, "latin1");
    for (const secret of secrets) assert.equal(content.includes(secret), false, `${file} holds ${secret}`);
  }
  const logged = JSON.stringify(server.log);
  for (const secret of secrets) assert.equal(logged.includes(secret), false, `the log holds ${secret}`);
});

test("rule 35: a client id cannot be taken for a subject", async (t) => {
  const server = await testServer(t);
  const subject = await server.user();
  assert.match(subject, /^usr_/);
  const created = await createClient(
    server.context.database,
    { issuerIsHttp: true },
    { id: "usr_x", redirectUris: [testRedirectUri] },
  );
  assert.match(created.problems?.join() ?? "", /does not begin with usr_/);
});

test("rule 36: public clients have no secret", async (t) => {
  const server = await testServer(t);
  const wanted = { id: "native", isPublic: true, secret: testSecret, redirectUris: [testRedirectUri] };
  const created = await createClient(server.context.database, { issuerIsHttp: true }, wanted);
  assert.match(created.problems?.join() ?? "", /a public client has no secret/);
  const machine = { id: "m", isPublic: true, grants: ["client_credentials"] };
  const refused = await createClient(server.context.database, { issuerIsHttp: true }, machine);
  assert.match(refused.problems?.join() ?? "", /cannot have the grant client_credentials/);
});

test("rule 37: forwarded headers count only behind a configured proxy, the Host header never", async (t) => {
  const open = await testServer(t);
  await open.client();
  await open.post(
    "/token",
    {},
    { ...app, "x-forwarded-for": "203.0.113.9", "x-forwarded-host": "evil.example", forwarded: "host=evil.example" },
  );
  const refusalOf = async (server: TestServer): Promise<string | undefined> =>
    (await server.audit()).find(({ event }) => event === "token refused")?.address;
  assert.equal(await refusalOf(open), "127.0.0.1");
  const behind = await testServer(t, { flags: ["--trusted-proxies", "127.0.0.0/8"] });
  await behind.client();
  const refused = await behind.post("/token", {}, { ...app, "x-forwarded-for": "198.51.100.1, 203.0.113.9" });
  assert.equal(String(refused.json["error_uri"]).startsWith(behind.issuer), true);
  assert.equal(await refusalOf(behind), "203.0.113.9");
});
