// What a client may ask to know of the sign-in: the parameter `claims`, `acr_values`, and an `auth_time` that is true.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { decodeJwt } from "jose";
import type { JWTPayload } from "jose";
import type { Browser } from "../testing/browser.ts";
import type { TestServer } from "../testing/test-server.ts";
import {
  answerOf,
  basic,
  testPassword,
  testRedirectUri,
  testRequest,
  testSecret,
  testServer,
} from "../testing/test-server.ts";

const app = { authorization: basic("app", testSecret) };
const request = { ...testRequest, scope: "openid profile email" };
const password = "urn:oasis:names:tc:SAML:2.0:ac:classes:Password";
const transport = `${password}ProtectedTransport`;

async function ready(t: TestContext, flags: readonly string[] = []): Promise<TestServer> {
  const server = await testServer(t, { flags });
  await server.client();
  await server.user();
  await server.user("bob");
  return server;
}

async function idTokenOf(server: TestServer, answer: URLSearchParams): Promise<JWTPayload> {
  const code = answer.get("code") ?? assert.fail(answer.toString());
  const form = { grant_type: "authorization_code", code, redirect_uri: testRedirectUri };
  const { json } = await server.post("/token", form, app);
  return decodeJwt(String(json["id_token"]));
}

function withClaims(claims: unknown, more: Record<string, string> = {}): Record<string, string> {
  return { ...request, claims: typeof claims === "string" ? claims : JSON.stringify(claims), ...more };
}

test("malformed claims are invalid_request", async (t) => {
  const server = await ready(t);
  const browser = server.browser();
  await server.authorize(browser, request);
  for (const claims of [
    "{",
    "[]",
    "null",
    '"x"',
    { id_token: [] },
    { userinfo: "x" },
    { id_token: { sub: 1 } },
    { id_token: { sub: { essential: "yes" } } },
    { id_token: { acr: { values: [] } } },
    { id_token: { acr: { values: "x" } } },
    { id_token: { acr: { value: "x", values: ["x"] } } },
    { id_token: { x: { value: "x".repeat(2048) } } },
    "[".repeat(2000),
  ]) {
    const answer = await server.authorize(browser, withClaims(claims));
    assert.equal(answer.get("error"), "invalid_request", JSON.stringify(claims).slice(0, 80));
    assert.equal(answer.get("state"), "xyz");
  }
  const twice = `${server.authorizeUrl(withClaims({}))}&claims={}`;
  assert.equal(answerOf(await browser.open(twice)).get("error"), "invalid_request");
});

test("claims move into the ID token what the owner has allowed by scope, and nothing else", async (t) => {
  const server = await ready(t);
  const browser = server.browser();
  const id_token = {
    email: { essential: true },
    name: null,
    preferred_username: { essential: false },
    auth_time: { essential: true },
    __proto__: null,
    unheard: { essential: true, value: { any: 1 } },
  };
  const plain = await idTokenOf(server, await server.authorize(browser, request));
  assert.equal("preferred_username" in plain, false);
  const told = await idTokenOf(server, await server.authorize(browser, withClaims({ id_token, other: 1 })));
  assert.equal(told["preferred_username"], "ann");
  assert.equal(typeof told["auth_time"], "number");
  const narrow = await idTokenOf(
    server,
    await server.authorize(browser, withClaims({ id_token }, { scope: "openid" })),
  );
  assert.equal("preferred_username" in narrow, false, "profile was not asked for");
});

test("a sub that is asked for by value is answered for that user alone", async (t) => {
  const server = await ready(t);
  const bob = server.browser();
  const page = await bob.signIn(await bob.open(server.authorizeUrl(request)), "bob", testPassword);
  const bobs = (await idTokenOf(server, answerOf(await bob.decide(page, "allow")))).sub!;
  const browser = server.browser();
  const anns = (await idTokenOf(server, await server.authorize(browser, request))).sub!;
  const silently = async (sub: unknown, member = "id_token"): Promise<URLSearchParams> =>
    answerOf(await browser.open(server.authorizeUrl(withClaims({ [member]: { sub } }, { prompt: "none" }))));
  assert.ok((await silently({ value: anns })).has("code"));
  assert.ok((await silently({ values: [bobs, anns] })).has("code"));
  for (const member of ["id_token", "userinfo"])
    for (const sub of [{ value: bobs }, { values: [bobs] }, { value: 1 }])
      assert.equal((await silently(sub, member)).get("error"), "login_required");
  const form = await browser.open(server.authorizeUrl(withClaims({ id_token: { sub: { value: bobs } } })));
  assert.match(form.body, /name="password"/);
  assert.equal(answerOf(await browser.signIn(form, "ann", testPassword)).get("error"), "login_required");
});

test("acr says what is true, and an essential one that cannot be is refused at once", async (t) => {
  for (const [flags, reached, other] of [
    [[], password, transport],
    [["--issuer", "https://auth.example"], transport, password],
  ] as const) {
    const server = await ready(t, flags);
    const browser = server.browser();
    const unmet = async (acr: unknown, more: Record<string, string> = {}): Promise<string | null> =>
      answerOf(await browser.open(server.authorizeUrl(withClaims({ id_token: { acr } }, more)))).get("error");
    assert.equal(await unmet({ essential: true, value: other }), "unmet_authentication_requirements", "before sign-in");
    const voluntary = { ...request, acr_values: `${other} phr` };
    const claims = await idTokenOf(server, await server.authorize(browser, voluntary));
    assert.deepEqual([claims["acr"], claims["amr"]], [reached, ["pwd"]]);
    for (const prompt of ["none", "login"])
      assert.equal(
        await unmet({ essential: true, values: ["phr", "phrh"] }, { prompt }),
        "unmet_authentication_requirements",
      );
    for (const acr of [{ essential: true }, { value: "phr" }, { essential: true, values: ["phr", reached] }, null])
      assert.equal(await unmet(acr), null, JSON.stringify(acr));
  }
});

test("auth_time is when the password was given: prompt=login and max_age renew it, a remembered session keeps it", async (t) => {
  const server = await ready(t);
  const browser = server.browser();
  const secondsNow = (): number => Math.floor(server.clock.nowMs / 1000);
  const authTime = async (who: Browser, more: Record<string, string> = {}): Promise<unknown> =>
    (await idTokenOf(server, await authorized(server, who, more)))["auth_time"];
  const first = secondsNow();
  assert.equal(await authTime(browser), first);
  server.clock.nowMs += 600_000;
  assert.equal(await authTime(browser), first);
  assert.equal(await authTime(browser, { prompt: "none" }), first);
  assert.equal(await authTime(browser, { max_age: "601" }), first);
  assert.equal(await authTime(browser, { max_age: "599" }), secondsNow());
  server.clock.nowMs += 60_000;
  assert.equal(await authTime(browser, { prompt: "login" }), secondsNow());
});

async function authorized(server: TestServer, who: Browser, more: Record<string, string>): Promise<URLSearchParams> {
  let visit = await who.open(server.authorizeUrl({ ...request, ...more }));
  if (visit.body.includes('name="password"')) visit = await who.signIn(visit, "ann", testPassword);
  if (visit.body.includes('name="decision"')) visit = await who.decide(visit, "allow");
  return answerOf(visit);
}
