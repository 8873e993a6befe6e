// One test for each of the first 18 of the 37 rules that RFC 6749, 7636, 9207 and 9700 set for this server, named after
// it: the authorization endpoint and codes. The rest stands in token-rules.test.ts. What each refusal looks like in
// detail is tested beside the checks.
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
import { formsOf } from "./testing/browser.ts";
import { showPasswordScript } from "./pages/password-field.ts";
import { loadConfig } from "./config/config.ts";
import { createClient } from "./admin/clients.ts";
import { echoableState, redirectUriMatches, redirectUriProblem } from "./protocol/redirect-uri.ts";
import { ready, newCode, redeem, app } from "./testing/signed-in-server.ts";

test("rule 1: GET, TLS, empty means omitted, unknown is ignored, repeated is refused", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  assert.match(await newCode(server, browser, { unknown: "1", nonce: "" }), /^[\w-]{43}$/);
  const twice = await browser.open(`${server.authorizeUrl(request)}&scope=email`);
  assert.equal(answerOf(twice).get("error"), "invalid_request");
  const emptyTwice = await browser.open(`${server.authorizeUrl(request)}&state=`);
  assert.equal(answerOf(emptyTwice).get("error"), "invalid_request");
  const plain = loadConfig({ argv: ["--issuer", "http://auth.example"], environment: {} });
  assert.match(plain.problems?.join() ?? "", /must be https/);
  const fragment = loadConfig({ argv: ["--issuer", "https://auth.example/#a"], environment: {} });
  assert.match(fragment.problems?.join() ?? "", /no query and no fragment/);
});

test("rule 2: a bad client_id or redirect_uri gets a page and never a redirect", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const cases: ReadonlyArray<readonly [string, string]> = [
    ["client_id=nobody", "unknown client"],
    ["", "missing client"],
    ["client_id=app&client_id=app", "repeated client"],
    ["client_id=%ff", "unreadable client"],
    ["client_id=app&redirect_uri=https://evil.example/cb", "foreign redirect URI"],
    [
      "client_id=app&redirect_uri=https://client.example/cb&redirect_uri=https://client.example/cb",
      "repeated redirect URI",
    ],
    ["client_id=app&redirect_uri=%ff", "unreadable redirect URI"],
  ];
  for (const [query, name] of cases) {
    const visit = await browser.open(`${server.issuer}/authorize?response_type=code&${query}`);
    assert.equal(visit.status, 400, name);
    assert.equal(visit.location, undefined, name);
    assert.match(visit.body, /This request cannot be answered/, name);
  }
});

test("rule 3: redirect URIs are compared exactly, keep their query, and only a loopback port varies", async (t) => {
  const server = await testServer(t);
  await server.user();
  await server.client({ redirectUris: ["https://client.example/cb?tenant=1"] });
  const browser = server.browser();
  const visit = await server.authorize(browser, { ...request, redirect_uri: "https://client.example/cb?tenant=1" });
  assert.deepEqual([...visit.keys()], ["tenant", "code", "iss", "state"]);
  const foreign = [
    "https://client.example/cb",
    "https://client.example/cb?tenant=1&x",
    "https://CLIENT.example/cb?tenant=1",
  ];
  for (const uri of foreign) {
    const refused = await browser.open(server.authorizeUrl({ ...request, redirect_uri: uri }));
    assert.equal(refused.status, 400, uri);
  }
  assert.equal(redirectUriMatches("http://127.0.0.1/cb", "http://127.0.0.1:5555/cb", true), true);
  assert.equal(redirectUriMatches("http://127.0.0.1/cb", "http://127.0.0.1:5555/cb", false), false);
  assert.equal(redirectUriMatches("http://127.0.0.1/cb", "http://127.0.0.1:5555@evil.example/cb", true), false);
  assert.equal(redirectUriMatches("https://a.example/cb", "https://a.example:444/cb", true), false);
  assert.match(redirectUriProblem("/cb", { issuerIsHttp: false, nativeClient: false }) ?? "", /not an absolute URI/);
  assert.match(
    redirectUriProblem("https://a.example/#x", { issuerIsHttp: false, nativeClient: false }) ?? "",
    /fragment/,
  );
});

test("rule 4: public clients register redirect URIs; one that is left out must be the only one", async (t) => {
  const server = await testServer(t);
  const none = await createClient(server.context.database, { issuerIsHttp: true }, { id: "spa", isPublic: true });
  assert.match(none.problems?.join() ?? "", /needs a redirect URI/);
  await server.user();
  await server.client();
  await server.client({ id: "two", redirectUris: [testRedirectUri, "https://client.example/other"] });
  const { redirect_uri: _, ...without } = request;
  const answer = await server.authorize(server.browser(), without);
  assert.ok(answer.has("code"));
  const ambiguous = await server.browser().open(server.authorizeUrl({ ...without, client_id: "two" }));
  assert.equal(ambiguous.status, 400);
});

test("rule 5: http redirect URIs are loopback only, and the authorization endpoint has no CORS", async (t) => {
  const rules = { issuerIsHttp: false, nativeClient: false };
  assert.match(redirectUriProblem("http://client.example/cb", rules) ?? "", /is http/);
  assert.match(redirectUriProblem("http://localhost/cb", rules) ?? "", /is http/);
  assert.equal(redirectUriProblem("http://127.0.0.1/cb", rules), undefined);
  assert.equal(redirectUriProblem("http://[::1]/cb", rules), undefined);
  const server = await testServer(t);
  await server.client({ id: "spa", isPublic: true, origins: ["https://spa.example"] });
  const visit = await server
    .browser()
    .request("GET", server.authorizeUrl(request), undefined, { origin: "https://spa.example" });
  assert.equal(visit.headers["access-control-allow-origin"], undefined);
});

test("rule 6: response_type missing and unknown are told apart, and state comes back byte for byte", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const { response_type: _, ...without } = request;
  assert.equal((await server.authorize(browser, without)).get("error"), "invalid_request");
  const implicit = await server.authorize(browser, { ...request, response_type: "token" });
  assert.equal(implicit.get("error"), "unsupported_response_type");
  const state = "a%20b%2Bc+d%C3%A9~%22%26%3D!*()";
  const { state: __, ...stateless } = request;
  const visit = await browser.open(`${server.authorizeUrl(stateless)}&state=${state}`);
  assert.equal(visit.location?.split("&state=")[1], state);
  assert.equal(echoableState("it's%2b", "it's+"), "it's%2b");
  assert.equal(echoableState('"#\r\n', '"#\r\n'), "%22%23%0D%0A");
});

test("rule 7: error descriptions hold only the characters that RFC 6749 allows", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const answer = await server.authorize(browser, { ...request, 'x"\\é': "1", resource: 'urn:"é' });
  assert.match(answer.get("error_description") ?? "", /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
  const strange = await browser.open(`${server.authorizeUrl(request)}&%22%C3%A9=1&%22%C3%A9=1`);
  assert.match(answerOf(strange).get("error_description") ?? "", /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
});

test("rule 8: no scope means the default or invalid_scope, and the granted scope is named", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  await server.client({ id: "bare", scope: "openid", secret: testSecret });
  await server.client({ id: "one", scope: "a b", defaultScope: "a", secret: testSecret });
  const { scope: _, ...without } = request;
  assert.equal((await server.authorize(browser, { ...without, client_id: "bare" })).get("error"), "invalid_scope");
  assert.equal((await server.authorize(browser, { ...request, scope: "unheard" })).get("error"), "invalid_scope");
  const code = (await server.authorize(browser, { ...without, client_id: "one" })).get("code")!;
  const token = await server.post("/token", redeem(code), { authorization: basic("one", testSecret) });
  assert.equal(token.json["scope"], "a");
  const same = await server.post("/token", redeem(await newCode(server, browser)), app);
  assert.equal(same.json["scope"], "profile");
});

test("rule 9, and the seed's 302: errors are redirected at once, or once the owner has signed in", async (t) => {
  const atOnce = await testServer(t);
  await atOnce.client();
  const first = await atOnce.browser().request("GET", atOnce.authorizeUrl({ ...request, scope: "unheard" }));
  assert.equal(first.status, 302, "the very first answer");
  assert.equal(answerOf(first).get("error"), "invalid_scope");
  assert.equal(first.headers["set-cookie"], undefined, "nothing is kept of it");
  const strict = await testServer(t, { flags: ["--strict"] });
  await strict.client();
  const page = await strict.browser().open(strict.authorizeUrl({ ...request, scope: "unheard" }));
  assert.match(page.body, /name="username"/, "strict mode follows RFC 9700");
  const server = await testServer(t, { flags: ["--errors-after-sign-in"] });
  await server.client();
  await server.user();
  const bad = server.authorizeUrl({ ...request, scope: "unheard" });
  const browser = server.browser();
  const login = await browser.open(bad);
  assert.match(login.body, /name="username"/);
  const redirected = await browser.signIn(login, "ann", testPassword);
  assert.equal(answerOf(redirected).get("error"), "invalid_scope");
  const silent = await server.browser().open(`${bad}&prompt=none`);
  assert.equal(answerOf(silent).get("error"), "invalid_scope");
  const noSession = await server.browser().open(server.authorizeUrl({ ...request, prompt: "none" }));
  assert.equal(answerOf(noSession).get("error"), "login_required");
});

test("rule 10: consent is explicit, its form is protected, and public clients are asked each time", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.client({ id: "native", isPublic: true, redirectUris: ["http://127.0.0.1/cb"] });
  await server.user();
  const browser = server.browser();
  const consent = await browser.signIn(await browser.open(server.authorizeUrl(request)), "ann", testPassword);
  assert.match(consent.body, /name="decision" value="deny"/);
  const forged = await browser.request("POST", `${consent.url}/consent`, "decision=allow");
  assert.equal(forged.location, undefined);
  const wrong = await browser.request("POST", `${consent.url}/consent`, "decision=allow&csrf=wrong");
  assert.equal(wrong.location, undefined);
  const cross = await browser.request("POST", `${consent.url}/consent`, "decision=allow", {
    origin: "https://evil.example",
  });
  assert.equal(cross.status, 403);
  assert.equal(answerOf(await browser.decide(consent, "allow")).has("code"), true);
  const again = await browser.open(server.authorizeUrl(request));
  assert.equal(answerOf(again).has("code"), true);
  const native = { ...request, ...testChallenge, client_id: "native", redirect_uri: "http://127.0.0.1:1234/cb" };
  for (const round of [1, 2]) {
    const asked = await browser.open(server.authorizeUrl(native));
    assert.match(asked.body, /name="decision"/, `round ${round}`);
    assert.equal(answerOf(await browser.decide(asked, "allow")).has("code"), true);
  }
  const silent = await browser.open(server.authorizeUrl({ ...native, prompt: "none" }));
  assert.equal(answerOf(silent).get("error"), "consent_required");
});

/** The one that shows what was typed as a password. */
function withoutOwnScript(body: string): string {
  return body.replace(`<script>${showPasswordScript}</script>`, "");
}

test("rule 11: pages cannot be framed, load nothing foreign and send no referrer", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.user();
  const browser = server.browser();
  const login = await browser.open(server.authorizeUrl(request));
  const consent = await browser.signIn(login, "ann", testPassword);
  const error = await browser.open(`${server.issuer}/authorize`);
  const account = await browser.open(`${server.issuer}/account`);
  for (const page of [login, consent, error, account]) {
    assert.match(String(page.headers["content-security-policy"]), /default-src 'none'.*frame-ancestors 'none'/);
    assert.equal(page.headers["x-frame-options"], "DENY");
    assert.equal(page.headers["referrer-policy"], "no-referrer");
    assert.equal(page.headers["cache-control"], "no-store");
    assert.doesNotMatch(withoutOwnScript(page.body), /<script|src="|url\(|<link/);
  }
  const framed = await browser.request("GET", server.authorizeUrl(request), undefined, { "sec-fetch-dest": "iframe" });
  assert.equal(framed.status, 400);
  const fetched = await browser.request("GET", `${server.issuer}/account`, undefined, { "sec-fetch-dest": "empty" });
  assert.equal(fetched.status, 403);
});

test("rule 12: a form with credentials is answered by 303, never 307", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.user();
  const browser = server.browser();
  const login = await browser.open(server.authorizeUrl(request));
  const [form] = formsOf(login.body);
  const body = new URLSearchParams({ ...form!.hidden, username: "ann", password: testPassword }).toString();
  const answer = await browser.request("POST", form!.action, body);
  assert.equal(answer.status, 303);
});

test("rule 13: whatever a client or a user writes is escaped", async (t) => {
  const server = await testServer(t);
  await server.client({ name: '<img src=x onerror="x()">' });
  await server.user();
  const browser = server.browser();
  const login = await browser.open(server.authorizeUrl({ ...request, login_hint: '"><script>x()</script>' }));
  assert.doesNotMatch(withoutOwnScript(login.body), /<script|<img/);
  assert.match(login.body, /&lt;img src=x onerror=&quot;x\(\)&quot;&gt;/);
});

test("rule 14: iss goes with success and error, and is what the metadata says", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const metadata = await server.send({
    method: "GET",
    url: `${server.issuer}/.well-known/oauth-authorization-server`,
    headers: {},
    body: undefined,
  });
  const document = JSON.parse(metadata.body) as Record<string, unknown>;
  assert.equal(document["issuer"], server.issuer);
  assert.equal(document["authorization_response_iss_parameter_supported"], true);
  assert.equal((await server.authorize(browser, request)).get("iss"), server.issuer);
  assert.equal((await server.authorize(browser, { ...request, scope: "unheard" })).get("iss"), server.issuer);
});

test("rule 15: there is no password grant and no implicit flow", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const password = await server.post(
    "/token",
    { grant_type: "password", username: "ann", password: testPassword },
    app,
  );
  assert.equal(password.json["error"], "unsupported_grant_type");
  for (const type of ["token", "id_token", "code id_token"]) {
    assert.equal(
      (await server.authorize(browser, { ...request, response_type: type })).get("error"),
      "unsupported_response_type",
    );
  }
  const mode = await server.authorize(browser, { ...request, response_mode: "fragment" });
  assert.equal(mode.get("error"), "invalid_request");
});

test("rule 16: a code lives shortly, works once, and its replay revokes what it gave", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server, "profile offline_access");
  const late = await newCode(server, browser);
  server.clock.nowMs += 60_000;
  const expired = await server.post("/token", redeem(late), app);
  assert.equal(expired.json["error"], "invalid_grant");
  const code = await newCode(server, browser, { scope: "profile offline_access" });
  const first = await server.post("/token", redeem(code), app);
  assert.equal(first.status, 200);
  const second = await server.post("/token", redeem(code), app);
  assert.equal(second.json["error"], "invalid_grant");
  const refresh = await server.post(
    "/token",
    { grant_type: "refresh_token", refresh_token: String(first.json["refresh_token"]) },
    app,
  );
  assert.equal(refresh.json["error"], "invalid_grant");
  const inspected = await server.post("/introspect", { token: String(first.json["access_token"]) }, app);
  assert.deepEqual(inspected.json, { active: false });
  const eleven = loadConfig({ argv: ["--code-lifetime", "11m"], environment: {} });
  assert.match(eleven.problems?.join() ?? "", /between 1s and 10m/);
});

test("rule 17: a code is bound to its client, its challenge and its redirect URI", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  await server.client({ id: "other", redirectUris: [testRedirectUri, "https://client.example/second"] });
  const code = await newCode(server, browser, testChallenge);
  const attempts: ReadonlyArray<readonly [string, Record<string, string>, string]> = [
    ["another client", redeem(code, { code_verifier: testVerifier }), "other"],
    ["another verifier", redeem(code, { code_verifier: "b".repeat(43) }), "app"],
    [
      "another redirect URI",
      { ...redeem(code, { code_verifier: testVerifier }), redirect_uri: "https://client.example/x" },
      "app",
    ],
    ["no redirect URI", { grant_type: "authorization_code", code, code_verifier: testVerifier }, "app"],
  ];
  for (const [name, form, client] of attempts) {
    const refused = await server.post("/token", form, { authorization: basic(client, testSecret) });
    assert.equal(refused.json["error"], "invalid_grant", name);
  }
  const good = await server.post("/token", redeem(code, { code_verifier: testVerifier }), app);
  assert.equal(good.status, 200);
});

test("rule 18: codes and tokens have at least 160 bits", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server, "profile offline_access");
  const seen = new Set<string>();
  for (let count = 0; count < 20; count += 1) {
    const code = await newCode(server, browser, { scope: "profile offline_access" });
    const token = await server.post("/token", redeem(code), app);
    for (const secret of [code, String(token.json["refresh_token"])]) {
      assert.equal(Buffer.from(secret, "base64url").length, 32);
      seen.add(secret);
    }
  }
  assert.equal(seen.size, 40);
});
