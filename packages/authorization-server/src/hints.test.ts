// What an old ID token is still good for: prompt=none, sign-in and logout by id_token_hint, through rotations of keys
// and in the middle of sessions of seven days; and that a hint which fits nobody ends in an error, not in a page
// without end.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { decodeProtectedHeader } from "jose";
import { rotateKeys } from "./admin/keys.ts";
import type { SigningAlgorithm } from "./keys/jwt.ts";
import { signingAlgorithms } from "./keys/jwt.ts";
import type { Browser } from "./testing/browser.ts";
import {
  answerOf,
  basic,
  testPassword,
  testRedirectUri,
  testRequest,
  testSecret,
  testServer,
} from "./testing/test-server.ts";
import type { TestServer } from "./testing/test-server.ts";

const app = { authorization: basic("app", testSecret) };
const request = { ...testRequest, scope: "openid" };
const bye = "https://client.example/bye";
const hour = 3_600_000;

async function ready(server: TestServer): Promise<void> {
  await server.client({ postLogoutRedirectUris: [bye] });
  await server.user();
  await server.user("bob");
}

async function idTokenOf(server: TestServer, browser: Browser, name = "ann"): Promise<string> {
  let visit = await browser.open(server.authorizeUrl(request));
  if (visit.body.includes('name="username"')) visit = await browser.signIn(visit, name, testPassword);
  if (visit.body.includes('name="decision"')) visit = await browser.decide(visit, "allow");
  const code = answerOf(visit).get("code")!;
  const form = { grant_type: "authorization_code", code, redirect_uri: testRedirectUri };
  return String((await server.post("/token", form, app)).json["id_token"]);
}

/** As `tulle auth key rotate`, or a month, would do it. */
async function rotate(server: TestServer): Promise<void> {
  await server.context.database.transaction((transaction) =>
    transaction.run("UPDATE signing_keys SET created_at = 0, activated_at = activated_at - 1", []),
  );
  await server.context.database.transaction((transaction) =>
    transaction.run("UPDATE signing_keys SET activated_at = 0 WHERE retired_at IS NULL AND activated_at IS NOT NULL"),
  );
  await server.context.keys.refresh();
}

async function silent(server: TestServer, browser: Browser, hint: string): Promise<URLSearchParams> {
  return answerOf(await browser.open(server.authorizeUrl({ ...request, prompt: "none", id_token_hint: hint })));
}

async function logOut(server: TestServer, browser: Browser, hint: string): ReturnType<Browser["open"]> {
  const parameters = { id_token_hint: hint, post_logout_redirect_uri: bye };
  return browser.open(`${server.issuer}/logout?${new URLSearchParams(parameters).toString()}`);
}

for (const algorithm of signingAlgorithms)
  test(`${algorithm} keys rotate in the middle of sessions of 7 days: hints, prompt=none and logout work throughout`, (t) =>
    sessionsThroughRotations(t, algorithm, rotate));

test("keys that `tulle auth key rotate` rotates in the middle of sessions of 7 days: all goes on too", (t) =>
  sessionsThroughRotations(t, "RS256", async (server) => {
    const { problems } = await rotateKeys(server.context.database, server.context.config);
    assert.equal(problems, undefined);
    await server.context.keys.refresh();
  }));

async function sessionsThroughRotations(
  t: TestContext,
  algorithm: SigningAlgorithm,
  rotateNow: (server: TestServer) => Promise<void>,
): Promise<void> {
  const server = await testServer(t, { flags: ["--signing-algorithm", algorithm] });
  await ready(server);
  const browsers = [1, 2, 3, 4, 5, 6, 7].map(() => server.browser());
  const hints: string[] = [];
  for (const browser of browsers) hints.push(await idTokenOf(server, browser));
  const { kid: first, alg } = decodeProtectedHeader(hints[0]!) as { kid: string; alg: string };
  assert.equal(alg, algorithm);
  for (let hours = 12; hours < 7 * 24; hours += 12) {
    server.clock.nowMs += 12 * hour;
    if (hours % 24 === 12) await rotateNow(server);
    else await server.context.keys.refresh();
    for (const [index, browser] of browsers.entries()) {
      const answer = await silent(server, browser, hints[index]!);
      assert.equal(answer.get("error"), null, `after ${hours} hours`);
      assert.ok(answer.has("code"));
    }
  }
  assert.doesNotMatch(server.context.keys.jwks, new RegExp(first), "long unpublished");
  const page = await browsers[1]!.open(server.authorizeUrl({ ...request, id_token_hint: hints[1]! }));
  assert.ok(answerOf(page).has("code"), "without prompt=none too");
  for (const [index, browser] of browsers.entries()) {
    assert.equal((await logOut(server, browser, hints[index]!)).location, bye);
    assert.equal((await silent(server, browser, hints[index]!)).get("error"), "login_required");
  }
}

test("a key that is known for hints alone vouches for no access token", async (t) => {
  const server = await testServer(t);
  await ready(server);
  const { keys, config } = server.context;
  const browser = server.browser();
  await idTokenOf(server, browser);
  const seconds = Math.floor(server.clock.nowMs / 1000);
  // What somebody signs who has got hold of a private key before it was rotated by hand.
  const claims = { iss: server.issuer, sub: "app", client_id: "app", aud: server.issuer, exp: seconds + 86_400 };
  const sign = (jti: string): string => keys.sign(config.signingAlgorithm, "at+jwt", { ...claims, jti });
  const [stolen, unseen] = [sign("x"), sign("y")];
  const inspect = async (token: string): Promise<unknown> =>
    (await server.post("/introspect", { token }, app)).json["active"];
  assert.equal(await inspect(stolen), true);
  await rotate(server);
  await rotate(server);
  server.clock.nowMs += hour;
  await keys.refresh();
  assert.ok(keys.verifyHint(stolen));
  assert.equal(await inspect(stolen), false, "although its signature was verified before");
  assert.equal(await inspect(unseen), false);
  const answer = await silent(server, browser, stolen);
  assert.equal(answer.get("error"), "login_required", "an access token is no hint");
});

test("a hint that cannot be verified ends in login_required at once, with and without prompt=none", async (t) => {
  const server = await testServer(t);
  await ready(server);
  const browser = server.browser();
  const hint = await idTokenOf(server, browser);
  const foreign = await testServer(t);
  await ready(foreign);
  const strangers = await idTokenOf(foreign, foreign.browser());
  for (const [name, bad] of [
    ["nonsense", "a.b.c"],
    ["another server's", strangers],
    ["changed", `${hint.slice(0, -4)}AAAA`],
  ] as const) {
    for (const more of [{}, { prompt: "none" }, { prompt: "login" }]) {
      const visit = await browser.open(server.authorizeUrl({ ...request, ...more, id_token_hint: bad }));
      assert.equal(answerOf(visit).get("error"), "login_required", name);
    }
  }
});

test("a hint for another user asks for that user once, and ends in login_required", async (t) => {
  const server = await testServer(t);
  await ready(server);
  const bobs = await idTokenOf(server, server.browser(), "bob");
  const browser = server.browser();
  await idTokenOf(server, browser);
  const url = server.authorizeUrl({ ...request, id_token_hint: bobs });
  const page = await browser.open(url);
  assert.match(page.body, /name="password"/);
  assert.doesNotMatch(page.body, /Please enter your password again|value="ann"/);
  const asAnn = await browser.signIn(page, "ann", testPassword);
  assert.equal(answerOf(asAnn).get("error"), "login_required");
  assert.equal(answerOf(asAnn).get("state"), "xyz");
  const asBob = await browser.signIn(await browser.open(url), "bob", testPassword);
  assert.ok(answerOf(asBob).has("code"));
  const fresh = server.browser();
  const nobody = await fresh.signIn(await fresh.open(url), "ann", testPassword);
  assert.equal(answerOf(nobody).get("error"), "login_required", "nobody was signed in before");
});
