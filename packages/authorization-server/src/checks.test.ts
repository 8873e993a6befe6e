// Each check's own refusal, where the rules leave detail: error code, and a description that a developer can act on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { removeClient } from "./admin/clients.ts";
import type { Browser } from "./testing/browser.ts";
import {
  answerOf,
  basic,
  errorIdOf,
  testChallenge,
  testPassword,
  testRedirectUri,
  testRequest as request,
  testSecret,
  testServer,
} from "./testing/test-server.ts";
import type { TestServer } from "./testing/test-server.ts";

const app = { authorization: basic("app", testSecret) };

async function ready(server: TestServer): Promise<Browser> {
  await server.client({ audiences: ["https://api.example/a"] });
  await server.user();
  const browser = server.browser();
  await server.authorize(browser, request);
  return browser;
}

test("authorize: each refusal reaches the client with its error, its state and a description", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const cases: ReadonlyArray<{ name: string; query: string; error: string; description: RegExp }> = [
    { name: "repeated parameter", query: "&foo=1&foo=2", error: "invalid_request", description: /parameter foo/ },
    {
      name: "broken percent-encoding",
      query: "&nonce=%zz",
      error: "invalid_request",
      description: /nonce is not valid/,
    },
    { name: "invalid UTF-8", query: "&nonce=%c3%28", error: "invalid_request", description: /nonce is not valid/ },
    { name: "control character", query: "&nonce=a%0ab", error: "invalid_request", description: /control characters/ },
    {
      name: "too long",
      query: `&nonce=${"n".repeat(2049)}`,
      error: "invalid_request",
      description: /longer than 2048/,
    },
    {
      name: "too many",
      query: Array.from({ length: 101 }, (_, index) => `&a${index}=1`).join(""),
      error: "invalid_request",
      description: /more than 100/,
    },
    { name: "request object", query: "&request=x", error: "request_not_supported", description: /request objects/ },
    {
      name: "request_uri",
      query: "&request_uri=urn:x",
      error: "request_uri_not_supported",
      description: /request_uri/,
    },
    {
      name: "registration",
      query: "&registration=x",
      error: "registration_not_supported",
      description: /registration/,
    },
    {
      name: "response mode",
      query: "&response_mode=fragment",
      error: "invalid_request",
      description: /response_mode/,
    },
    { name: "prompt", query: "&prompt=dance", error: "invalid_request", description: /prompt/ },
    {
      name: "prompt none with others",
      query: "&prompt=none%20login",
      error: "invalid_request",
      description: /prompt=none/,
    },
    { name: "max_age", query: "&max_age=soon", error: "invalid_request", description: /max_age/ },
    {
      name: "resource",
      query: "&resource=https://api.example/b",
      error: "invalid_target",
      description: /not registered/,
    },
    { name: "relative resource", query: "&resource=api", error: "invalid_target", description: /absolute URI/ },
  ];
  for (const { name, query, error, description } of cases) {
    const answer = answerOf(await browser.open(server.authorizeUrl(request) + query));
    assert.equal(answer.get("error"), error, name);
    assert.match(answer.get("error_description") ?? "", description, name);
    assert.equal(answer.get("error_uri"), `${server.issuer}/errors/${error}`, name);
    assert.equal(answer.get("state"), "xyz", name);
  }
});

test("authorize: a request of unreasonable size gets a page, and nothing of it is kept", async (t) => {
  const server = await testServer(t);
  await server.client();
  const form = new URLSearchParams({ ...request, nonce: "n".repeat(17_000) }).toString();
  const visit = await server.browser().request("POST", `${server.issuer}/authorize`, form);
  assert.equal(visit.status, 400);
  assert.match(visit.body, /longer than 16384 bytes/);
});

test("authorize: a state that cannot be read comes back as it was sent", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const { state: _, ...stateless } = request;
  const visit = await browser.open(`${server.authorizeUrl(stateless)}&state=%ff%0a`);
  assert.equal(answerOf(visit).get("error"), "invalid_request");
  assert.equal(visit.location?.split("&state=")[1], "%ff%0a");
});

test("token: a refresh ends with the consent that it came from, and tokens with their client", async (t) => {
  const server = await testServer(t, { flags: ["--consent-lifetime", "20d"] });
  const browser = await ready(server);
  const answer = await server.authorize(browser, { ...request, scope: "profile offline_access" });
  const form = { grant_type: "authorization_code", code: answer.get("code")!, redirect_uri: testRedirectUri };
  const first = await server.post("/token", form, app);
  const refresh = (token: unknown): ReturnType<TestServer["post"]> =>
    server.post("/token", { grant_type: "refresh_token", refresh_token: String(token) }, app);
  server.clock.nowMs += 10 * 86_400_000;
  const second = await refresh(first.json["refresh_token"]);
  assert.equal(second.status, 200);
  await server.client({ id: "watcher", resourceServerFor: [server.issuer, "https://api.example/a"] });
  const watch = async (): Promise<unknown> =>
    (
      await server.post(
        "/introspect",
        { token: String(second.json["access_token"]) },
        { authorization: basic("watcher", testSecret) },
      )
    ).json["active"];
  assert.equal(await watch(), true);
  server.clock.nowMs += 11 * 86_400_000;
  const third = await refresh(second.json["refresh_token"]);
  assert.match(String(third.json["error_description"]), /consent has expired/);
  server.clock.nowMs -= 11 * 86_400_000;
  await removeClient(server.context.database, "app");
  assert.equal(await watch(), false);
});

test("authorize: resources may repeat, and POST is served as GET is", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const url = `${server.authorizeUrl(request)}&resource=https://api.example/a&resource=${server.issuer}`;
  const consent = await browser.open(url);
  const answer = answerOf(await browser.decide(consent, "allow"));
  const token = await server.post(
    "/token",
    { grant_type: "authorization_code", code: answer.get("code")!, redirect_uri: testRedirectUri },
    app,
  );
  const inspected = await server.post("/introspect", { token: String(token.json["access_token"]) }, app);
  assert.deepEqual(inspected.json["aud"], ["https://api.example/a", server.issuer]);
  const form = new URLSearchParams(request).toString();
  const posted = await browser.request("POST", `${server.issuer}/authorize`, form);
  assert.equal(posted.status, 302);
  assert.ok(answerOf(posted).has("code"));
  const asJson = await browser.request("POST", `${server.issuer}/authorize`, form, {
    "content-type": "application/json",
  });
  assert.equal(asJson.status, 400);
});

test("authorize: offline_access is dropped for a client that has no refresh tokens", async (t) => {
  const server = await testServer(t);
  await server.user();
  await server.client({ grants: ["authorization_code"] });
  const answer = await server.authorize(server.browser(), { ...request, scope: "profile offline_access" });
  const form = { grant_type: "authorization_code", code: answer.get("code")!, redirect_uri: testRedirectUri };
  const token = await server.post("/token", form, app);
  assert.equal(token.json["scope"], "profile");
  assert.equal("refresh_token" in token.json, false);
});

test("owner: a denial is access_denied, once, and grants nothing", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.user();
  const browser = server.browser();
  const consent = await browser.signIn(await browser.open(server.authorizeUrl(request)), "ann", testPassword);
  const denied = answerOf(await browser.decide(consent, "deny"));
  assert.equal(denied.get("error"), "access_denied");
  assert.equal(denied.get("state"), "xyz");
  const twice = await browser.decide(consent, "allow");
  assert.equal(twice.location, undefined);
  assert.match(twice.body, /You did not allow app/);
  const again = await browser.open(server.authorizeUrl(request));
  assert.match(again.body, /name="decision"/);
});

test("owner: what prompt, max_age and id_token_hint ask for", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.user();
  await server.user("bob");
  const browser = server.browser();
  const open = { ...request, scope: "openid" };
  const signInAs = async (name: string): Promise<string> => {
    const other = server.browser();
    let visit = await other.signIn(await other.open(server.authorizeUrl(open)), name, testPassword);
    visit = await other.decide(visit, "allow");
    const form = {
      grant_type: "authorization_code",
      code: answerOf(visit).get("code")!,
      redirect_uri: testRedirectUri,
    };
    return String((await server.post("/token", form, app)).json["id_token"]);
  };
  const hintBob = await signInAs("bob");
  await server.authorize(browser, open);
  server.clock.nowMs += 60_000;
  const cases: ReadonlyArray<{ name: string; more: Record<string, string>; silent: string; page: RegExp }> = [
    { name: "prompt=login", more: { prompt: "login" }, silent: "", page: /name="password"/ },
    { name: "prompt=consent", more: { prompt: "consent" }, silent: "", page: /name="decision"/ },
    { name: "prompt=select_account", more: { prompt: "select_account" }, silent: "", page: /name="password"/ },
    { name: "max_age passed", more: { max_age: "30" }, silent: "login_required", page: /name="password"/ },
    { name: "max_age of zero", more: { max_age: "0" }, silent: "login_required", page: /name="password"/ },
    {
      name: "hint of another user",
      more: { id_token_hint: hintBob },
      silent: "login_required",
      page: /name="password"/,
    },
    { name: "more scope", more: { scope: "openid email" }, silent: "consent_required", page: /name="decision"/ },
  ];
  for (const { name, more, silent, page } of cases) {
    const visit = await browser.open(server.authorizeUrl({ ...open, ...more }));
    assert.match(visit.body, page, name);
    if (silent === "") continue;
    const answer = answerOf(await browser.open(server.authorizeUrl({ ...open, ...more, prompt: "none" })));
    assert.equal(answer.get("error"), silent, name);
  }
  assert.ok((await server.authorize(browser, { ...open, max_age: "3600", prompt: "none" })).has("code"));
  const fresh = await server.authorize(browser, { ...open, prompt: "login", nonce: "n-1" });
  assert.ok(fresh.has("code"), "one sign-in answers prompt=login");
});

test("token: message checks say what to change", async (t) => {
  const server = await testServer(t);
  await server.client();
  const type = "content-type";
  const cases: ReadonlyArray<{ name: string; body: string; headers: Record<string, string>; description: RegExp }> = [
    { name: "JSON body", body: "{}", headers: { [type]: "application/json" }, description: /content type/ },
    {
      name: "charset",
      body: "a=b",
      headers: { [type]: "application/x-www-form-urlencoded; charset=latin1" },
      description: /UTF-8/,
    },
    { name: "control character", body: "grant_type=a%00", headers: {}, description: /control characters/ },
    { name: "large body", body: `a=${"x".repeat(70_000)}`, headers: {}, description: /larger than 65536 bytes/ },
    {
      name: "Basic without base64",
      body: "grant_type=refresh_token",
      headers: { authorization: "Basic !!!" },
      description: /base64/,
    },
    {
      name: "Basic without colon",
      body: "grant_type=refresh_token",
      headers: { authorization: `Basic ${btoa("app")}` },
      description: /base64/,
    },
    {
      name: "Basic without UTF-8",
      body: "grant_type=refresh_token",
      headers: { authorization: "Basic /zpi" },
      description: /base64/,
    },
    {
      name: "empty Basic",
      body: "grant_type=refresh_token",
      headers: { authorization: "Basic" },
      description: /base64/,
    },
  ];
  for (const { name, body, headers, description } of cases) {
    const answer = await server.post("/token", body, headers);
    assert.equal(answer.status, 400, name);
    assert.equal(answer.json["error"], "invalid_request", name);
    assert.match(String(answer.json["error_description"]), description, name);
    assert.equal(answer.headers["content-type"], "application/json;charset=UTF-8", name);
    assert.equal(answer.headers["pragma"], "no-cache", name);
  }
});

test("token: another method and missing authentication are named as such", async (t) => {
  const server = await testServer(t);
  const put = await server.send({
    method: "PUT",
    url: `${server.issuer}/token`,
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "grant_type=refresh_token",
  });
  assert.equal(put.status, 400);
  assert.match(put.body, /the method must be POST/);
  const anonymous = await server.post("/token", { grant_type: "refresh_token" });
  assert.match(String(anonymous.json["error_description"]), /no client authentication/);
});

test("token: a replay revokes even when the code has expired meanwhile", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const answer = await server.authorize(browser, request);
  const form = { grant_type: "authorization_code", code: answer.get("code")!, redirect_uri: testRedirectUri };
  const first = await server.post("/token", form, app);
  server.clock.nowMs += 120_000;
  const replay = await server.post("/token", form, app);
  assert.match(String(replay.json["error_description"]), /redeemed before/);
  const inspected = await server.post("/introspect", { token: String(first.json["access_token"]) }, app);
  assert.equal(inspected.json["active"], false);
});

test("token: a secret that was sent without form-encoding is accepted, except in strict mode", async (t) => {
  const secret = `${"s".repeat(32)}+/=: %zz`;
  const raw = { authorization: `Basic ${btoa(`app:${secret}`)}` };
  const form = { grant_type: "client_credentials" };
  const lenient = await testServer(t);
  await lenient.client({ secret, grants: ["client_credentials"] });
  assert.equal((await lenient.post("/token", form, raw)).status, 200);
  const strict = await testServer(t, { flags: ["--strict"] });
  await strict.client({ secret, grants: ["client_credentials"] });
  assert.equal((await strict.post("/token", form, raw)).json["error"], "invalid_request");
});

test("token: client credentials have their own scopes and audiences, and no refresh token", async (t) => {
  const server = await testServer(t);
  await server.client({
    id: "job",
    grants: ["client_credentials"],
    scope: "openid a b",
    audiences: ["https://api.example/a"],
  });
  const job = { authorization: basic("job", testSecret) };
  const good = await server.post("/token", { grant_type: "client_credentials" }, job);
  assert.equal(good.json["scope"], "a b");
  assert.equal("refresh_token" in good.json, false);
  const inspected = await server.post("/introspect", { token: String(good.json["access_token"]) }, job);
  assert.equal(inspected.json["sub"], "job");
  assert.equal(inspected.json["aud"], "https://api.example/a");
  const openid = await server.post("/token", { grant_type: "client_credentials", scope: "openid" }, job);
  assert.equal(openid.json["error"], "invalid_scope");
  const foreign = await server.post(
    "/token",
    { grant_type: "client_credentials", resource: "https://api.example/b" },
    job,
  );
  assert.equal(foreign.json["error"], "invalid_target");
});

test("token: an id registered for a grant that it cannot have is refused all the same", async (t) => {
  const server = await testServer(t);
  await server.client({ id: "native", isPublic: true });
  // The registration refuses this; a row written by other means must not open a way.
  await server.context.database.transaction((transaction) =>
    transaction.run("UPDATE clients SET grant_types = ? WHERE id = ?", ['["client_credentials"]', "native"]),
  );
  const refused = await server.post("/token", { grant_type: "client_credentials", client_id: "native" });
  assert.equal(refused.json["error"], "unauthorized_client");
});

test("token: a code is worth nothing after its grant was revoked, and other resources are refused", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  const form = async (): Promise<Record<string, string>> => ({
    grant_type: "authorization_code",
    code: (await server.authorize(browser, request)).get("code")!,
    redirect_uri: testRedirectUri,
  });
  const wide = await server.post("/token", { ...(await form()), resource: "https://api.example/b" }, app);
  assert.equal(wide.json["error"], "invalid_target");
  const before = await form();
  const account = await browser.open(`${server.issuer}/account`);
  const after = await browser.submit(account, /\/grants\/[^/]+\/revoke$/, {});
  assert.match(after.body, /no longer has access/);
  const refused = await server.post("/token", before, app);
  assert.equal(refused.json["error"], "invalid_grant");
  assert.match(String(refused.json["error_description"]), /was revoked/);
});

test("token: a foreign client's attempt neither uses a code up nor revokes it", async (t) => {
  const server = await testServer(t);
  const browser = await ready(server);
  await server.client({ id: "other" });
  const answer = await server.authorize(browser, request);
  const form = { grant_type: "authorization_code", code: answer.get("code")!, redirect_uri: testRedirectUri };
  const other = { authorization: basic("other", testSecret) };
  assert.equal((await server.post("/token", form, other)).json["error"], "invalid_grant");
  const good = await server.post("/token", form, app);
  assert.equal(good.status, 200);
  assert.equal((await server.post("/token", form, other)).json["error"], "invalid_grant");
  const inspected = await server.post("/introspect", { token: String(good.json["access_token"]) }, app);
  assert.equal(inspected.json["active"], true);
});

test("audit: a redirect URI that is not registered is told beside those that are", async (t) => {
  const server = await testServer(t);
  await server.client();
  const page = await server.browser().open(server.authorizeUrl({ ...request, redirect_uri: `${testRedirectUri}/` }));
  assert.equal(page.status, 400);
  const event = (await server.audit()).find(({ error }) => error === "invalid_request");
  assert.equal(event?.reason, `asked for ${testRedirectUri}/; registered: ${testRedirectUri}`);
});

test("audit: the error id that a client sees leads to the reason, and to no secret", async (t) => {
  const server = await testServer(t);
  await server.client();
  const refused = await server.post(
    "/token",
    { grant_type: "refresh_token" },
    { authorization: basic("app", "wrong".repeat(9)) },
  );
  const [event] = await server.audit(errorIdOf(refused.json["error_description"]));
  assert.equal(event?.reason, "wrong secret");
  assert.equal(event?.clientId, "app");
  assert.equal(JSON.stringify(await server.audit()).includes("wrongwrong"), false);
});

test("strict mode asks every client for PKCE", async (t) => {
  const server = await testServer(t, { flags: ["--strict"] });
  await server.client();
  await server.user();
  const browser = server.browser();
  assert.equal((await server.authorize(browser, request)).get("error"), "invalid_request");
  assert.ok((await server.authorize(browser, { ...request, ...testChallenge })).has("code"));
});
