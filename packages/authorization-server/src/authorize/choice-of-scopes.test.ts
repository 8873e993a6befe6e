// The owner chooses among the scopes that a client asks for; what is chosen is what the code, the tokens, refreshes and
// later requests have, and nobody gets more by asking otherwise.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import type { Browser, Visit } from "../testing/browser.ts";
import { answerOf, testPassword, testRedirectUri, testRequest, testServer } from "../testing/test-server.ts";
import type { TestServer } from "../testing/test-server.ts";

const asked = "openid profile email offline_access orders.read";

interface Scene {
  readonly server: TestServer;
  readonly browser: Browser;
  readonly basic: string;
  /** Signed in, and at the consent page or back at the client. */
  readonly ask: (scope?: string, more?: Readonly<Record<string, string>>) => Promise<Visit>;
  readonly redeem: (visit: Visit) => Promise<Readonly<Record<string, unknown>>>;
  readonly refresh: (token: unknown) => Promise<Readonly<Record<string, unknown>>>;
}

async function scene(context: TestContext, settings: object = {}): Promise<Scene> {
  const server = await testServer(context);
  const { basic } = await server.client({ scope: `${asked} orders.write department`, ...settings });
  await server.user();
  const browser = server.browser();
  await browser.signIn(await browser.open(`${server.issuer}/account`), "ann", testPassword);
  const post = async (form: Readonly<Record<string, string>>): Promise<Readonly<Record<string, unknown>>> =>
    (await server.post("/token", form, { authorization: basic })).json;
  return {
    server,
    browser,
    basic,
    ask: (scope = asked, more = {}) => browser.open(server.authorizeUrl({ ...testRequest, scope, ...more })),
    redeem: (visit) => {
      const code = answerOf(visit).get("code") ?? "";
      return post({ grant_type: "authorization_code", code, redirect_uri: testRedirectUri });
    },
    refresh: (token) => post({ grant_type: "refresh_token", refresh_token: String(token) }),
  };
}

function boxes(page: Visit): readonly string[] {
  return [...page.body.matchAll(/type="checkbox" name="scope" value="([^"]*)"(\s+checked)?/g)].map(
    ([, token, ticked]) => token! + (ticked === undefined ? "-" : "+"),
  );
}

// Seed, line 66: `scope` is there when the granted scope differs from the requested one.
test("seed line 66: what the owner unticks is neither in the answer nor in the tokens", async (context) => {
  const { browser, ask, redeem, refresh } = await scene(context);
  const page = await ask();
  assert.deepEqual(boxes(page), ["profile+", "email+", "offline_access+", "orders.read+"]);
  const tokens = await redeem(await browser.decide(page, "allow", ["email", "orders.read"]));
  assert.equal(tokens["scope"], "openid profile offline_access");
  const payload = JSON.parse(
    Buffer.from(String(tokens["access_token"]).split(".")[1]!, "base64url").toString(),
  ) as object;
  assert.equal((payload as { scope: string }).scope, "openid profile offline_access");
  const refreshed = await refresh(tokens["refresh_token"]);
  assert.equal(refreshed["scope"], "openid profile offline_access");
});

test("without offline_access there is no refresh token", async (context) => {
  const { browser, ask, redeem } = await scene(context);
  const tokens = await redeem(await browser.decide(await ask(), "allow", ["offline_access"]));
  assert.equal(tokens["refresh_token"], undefined);
  assert.equal(tokens["scope"], "openid profile email orders.read");
});

test("what was answered is remembered, either way; only what is new is asked", async (context) => {
  const { browser, ask, redeem } = await scene(context);
  await browser.decide(await ask(), "allow", ["email"]);
  const again = await redeem(await ask());
  assert.equal(again["scope"], "openid profile offline_access orders.read", "no page, and no email");
  const silent = await redeem(await ask(asked, { prompt: "none" }));
  assert.equal(silent["scope"], "openid profile offline_access orders.read");
  const wider = await ask(`${asked} orders.write`);
  assert.deepEqual(boxes(wider), ["profile+", "email-", "offline_access+", "orders.read+", "orders.write+"]);
  const tokens = await redeem(await browser.decide(wider, "allow"));
  assert.equal(tokens["scope"], "openid profile offline_access orders.read orders.write");
  const onlyDeclined = await ask("email");
  assert.deepEqual(boxes(onlyDeclined), ["email-"], "nothing else remains: the owner is asked");
  assert.equal(answerOf(await ask("email", { prompt: "none" })).get("error"), "consent_required");
});

test("openid, and what the client's registration requires, cannot be left out", async (context) => {
  const { browser, ask, redeem, server } = await scene(context, { requiredScope: "profile" });
  const page = await ask();
  assert.deepEqual(boxes(page), ["email+", "offline_access+", "orders.read+"]);
  assert.match(page.body, /Know who you are.*needed.*See your name.*needed/s);
  const tokens = await redeem(await browser.decide(page, "allow", ["email", "offline_access", "orders.read"]));
  assert.equal(tokens["scope"], "openid profile");
  await assert.rejects(
    server.client({ id: "other", scope: "openid", requiredScope: "profile" }),
    /not part of the scope/,
  );
});

test("a scope that becomes required is asked again where it was left out", async (context) => {
  const { browser, ask, server } = await scene(context);
  await browser.decide(await ask(), "allow", ["email"]);
  await server.context.database.transaction((transaction) =>
    transaction.run("UPDATE clients SET required_scope = ? WHERE id = ?", ["email", "app"]),
  );
  const page = await ask();
  assert.deepEqual(boxes(page), ["profile+", "offline_access+", "orders.read+"]);
  // The answer to a page that showed it otherwise is void: it is shown anew.
  await server.context.database.transaction((transaction) =>
    transaction.run("UPDATE clients SET required_scope = ? WHERE id = ?", ["", "app"]),
  );
  const shownAnew = await browser.decide(page, "allow");
  assert.deepEqual(boxes(shownAnew), ["profile+", "email-", "offline_access+", "orders.read+"]);
});

test("to allow nothing is to say no", async (context) => {
  const { browser, ask } = await scene(context);
  const page = await ask("profile email");
  const answer = answerOf(await browser.decide(page, "allow", ["profile", "email"]));
  assert.equal(answer.get("error"), "access_denied");
  assert.equal(answer.get("code"), null);
});

test("after a no the page says so, whichever answer comes then, and another browser learns nothing", async (context) => {
  const { server, browser, ask } = await scene(context, { name: "Orders" });
  const page = await ask();
  assert.equal(answerOf(await browser.decide(page, "deny")).get("error"), "access_denied");
  for (const over of [
    await browser.open(page.url),
    await browser.decide(page, "allow"),
    await browser.decide(page, "deny"),
  ]) {
    assert.equal(over.location, undefined);
    assert.match(over.body, /You did not allow Orders.*given nothing.*<a [^>]*href="https:\/\/client.example">/s);
  }
  const stranger = server.browser();
  await stranger.open(server.authorizeUrl(testRequest));
  assert.match((await stranger.open(page.url)).body, /This page has expired/);
  assert.equal((await ask(asked, { state: "anew" })).status, 200, "who begins again is asked again");
});

test("a forged answer with scopes that were not asked for gets nothing more", async (context) => {
  const { browser, ask, redeem } = await scene(context);
  const page = await ask("openid profile");
  const extra = ["orders.write", "department", "roles", "openid profile email", "__proto__", "constructor"];
  const more = extra.map((token) => `scope=${encodeURIComponent(token)}`).join("&");
  const csrf = /name="csrf" value="([^"]*)"/.exec(page.body)![1]!;
  const action = /action="([^"]*consent)"/.exec(page.body)![1]!;
  const visit = await browser.request(
    "POST",
    action,
    `csrf=${csrf}&decision=allow&scope=profile&scope=profile&${more}`,
  );
  assert.equal((await redeem(visit))["scope"], "openid profile");
});

test("all of a hundred scopes that are ticked are granted", async (context) => {
  const many = Array.from({ length: 150 }, (_, index) => `s${index}`).join(" ");
  const { browser, ask, redeem } = await scene(context, { scope: many });
  const tokens = await redeem(await browser.decide(await ask(many), "allow"));
  assert.equal(tokens["scope"], many);
});

test("a scope that is taken back at a later page ends what was given with it", async (context) => {
  const { browser, ask, redeem, refresh } = await scene(context);
  const before = await redeem(await browser.decide(await ask(), "allow"));
  const page = await ask(asked, { prompt: "consent" });
  assert.deepEqual(boxes(page), ["profile+", "email+", "offline_access+", "orders.read+"]);
  const after = await redeem(await browser.decide(page, "allow", ["orders.read"]));
  assert.equal((await refresh(before["refresh_token"]))["error"], "invalid_grant");
  assert.equal((await refresh(after["refresh_token"]))["scope"], "openid profile email offline_access");
  assert.equal((await redeem(await ask()))["scope"], "openid profile email offline_access");
  const account = await browser.open(`${new URL(page.url).origin}/account`);
  assert.doesNotMatch(account.body, /orders\.read/, "the account page shows what is in force");
});

test("scopes that tell what the owner is have words", async (context) => {
  const { server, ask } = await scene(context, { scope: "openid roles groups department" });
  await server.context.database.transaction((transaction) =>
    transaction.run("UPDATE users SET claims = ?", ['{"department":"sales"}']),
  );
  const { body } = await ask("openid roles groups department");
  assert.match(body, /See your roles.*See the groups you belong to.*See your “<bdi>department<\/bdi>”/s);
});
