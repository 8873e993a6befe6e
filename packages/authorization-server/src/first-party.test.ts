// Clients that nobody is asked about, consent of public clients that is remembered, and two secrets that pass for a
// time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { endPreviousSecret, replaceClientSecret, updateClient } from "./admin/clients.ts";
import type { Browser, Visit } from "./testing/browser.ts";
import {
  answerOf,
  basic,
  testChallenge,
  testPassword,
  testRequest,
  testSecret,
  testServer,
} from "./testing/test-server.ts";
import type { TestServer } from "./testing/test-server.ts";

const rules = { issuerIsHttp: true };

async function signedIn(server: TestServer): Promise<Browser> {
  await server.user();
  const browser = server.browser();
  await browser.signIn(await browser.open(`${server.issuer}/account`), "ann", testPassword);
  return browser;
}

function asks(visit: Visit): boolean {
  return visit.body.includes('name="decision"');
}

test("nobody is asked about a trusted client, but everybody signs in; the audit log says so once", async (t) => {
  const server = await testServer(t);
  await server.client({ trusted: true });
  const url = server.authorizeUrl({ ...testRequest, scope: "openid profile" });
  await server.user();
  const browser = server.browser();
  const login = await browser.open(url);
  assert.match(login.body, /name="password"/);
  assert.ok(answerOf(await browser.signIn(login, "ann", testPassword)).has("code"));
  assert.ok(answerOf(await browser.open(url)).has("code"));
  assert.ok(answerOf(await browser.open(`${url}&prompt=none`)).has("code"));
  const told = (await server.audit()).filter(({ event }) => event.includes("trusted"));
  assert.equal(told.length, 1);
  assert.equal(told[0]!.clientId, "app");
  const asked = await browser.open(`${url}&prompt=consent`);
  assert.ok(asks(asked), "a client may ask for the question");
  await browser.decide(asked, "allow", ["profile"]);
  const { database } = server.context;
  const rows = await database.read((reader) => reader.all("SELECT scope, declined FROM grants"));
  assert.ok(answerOf(await browser.open(url)).has("code"));
  assert.deepEqual(
    await database.read((reader) => reader.all("SELECT scope, declined FROM grants")),
    rows,
    "what the owner left out stays out",
  );
});

test("what a trusted client got is no consent once it is not trusted any more", async (t) => {
  const server = await testServer(t);
  await server.client({ trusted: true });
  const browser = await signedIn(server);
  const ask = (scope: string): Promise<Visit> => browser.open(server.authorizeUrl({ ...testRequest, scope }));
  assert.ok(answerOf(await ask("profile email")).has("code"));
  await updateClient(server.context.database, rules, "app", { trusted: false });
  const page = await ask("profile");
  assert.ok(asks(page));
  await browser.decide(page, "allow");
  assert.ok(answerOf(await ask("profile")).has("code"));
  assert.ok(asks(await ask("profile email")), "consent to a part is none to the rest");
});

test("a trusted public client has https redirect URIs alone, and so has remembered consent of public ones", async (t) => {
  const server = await testServer(t);
  for (const redirectUri of [
    "http://127.0.0.1/cb",
    "https://localhost/cb",
    "https://127.0.0.1/cb",
    "com.example.app:/cb",
  ]) {
    const refused = server.client({ id: "native", isPublic: true, trusted: true, redirectUris: [redirectUri] });
    await assert.rejects(refused, /a trusted public client has https redirect URIs alone/, redirectUri);
  }
  const addresses = [
    "https://app.example/cb",
    "https://localhost/cb",
    "http://127.0.0.1:1234/cb",
    "com.example.app:/cb",
  ];
  await server.client({ id: "app", isPublic: true, redirectUris: addresses });
  const browser = await signedIn(server);
  for (const [index, redirectUri] of addresses.entries()) {
    const request = { ...testRequest, ...testChallenge, redirect_uri: redirectUri };
    const page = await browser.open(server.authorizeUrl(request));
    assert.equal(asks(page), true, redirectUri);
    await browser.decide(page, "allow");
    const again = await browser.open(server.authorizeUrl(request));
    assert.equal(asks(again), index > 0, `again at ${redirectUri}`);
    const silent = answerOf(await browser.open(server.authorizeUrl({ ...request, prompt: "none" })));
    assert.equal(silent.get("error"), index > 0 ? "consent_required" : null);
    if (index > 0) continue;
    // Each address is asked for anew.
    const owner = await browser.open(`${server.issuer}/account`);
    await browser.submit(owner, /\/revoke$/, {});
  }
});

test("two secrets pass until the named time, or until the old one is ended", async (t) => {
  const server = await testServer(t);
  const { database } = server.context;
  await server.client({ grants: ["client_credentials"], redirectUris: [], scope: "orders.read" });
  const passes = async (secret: string): Promise<boolean> => {
    const answer = await server.post(
      "/token",
      { grant_type: "client_credentials" },
      { authorization: basic("app", secret) },
    );
    return answer.status === 200;
  };
  const second = "t".repeat(43);
  const third = "u".repeat(43);
  assert.equal(
    (await replaceClientSecret(database, "app", { secret: second, overlapMs: 3_600_000 })).problems,
    undefined,
  );
  assert.deepEqual([await passes(testSecret), await passes(second), await passes("x".repeat(43))], [true, true, false]);
  server.clock.nowMs += 3_599_999;
  assert.equal(await passes(testSecret), true);
  server.clock.nowMs += 1;
  assert.deepEqual([await passes(testSecret), await passes(second)], [false, true]);
  await replaceClientSecret(database, "app", { secret: third, overlapMs: 3_600_000 });
  await endPreviousSecret(database, "app");
  assert.deepEqual([await passes(second), await passes(third)], [false, true]);
  assert.match((await endPreviousSecret(database, "app")).problems![0]!, /one secret alone/);
  await replaceClientSecret(database, "app", { secret: testSecret });
  assert.deepEqual([await passes(third), await passes(testSecret)], [false, true], "without an overlap at once");
  await replaceClientSecret(database, "app", { secret: second, overlapMs: 3_600_000 });
  await replaceClientSecret(database, "app", { secret: third, overlapMs: 3_600_000 });
  assert.deepEqual(
    [await passes(testSecret), await passes(second), await passes(third)],
    [false, true, true],
    "two at most",
  );
  assert.match(
    (await replaceClientSecret(database, "app", { overlapMs: 91 * 86_400_000 })).problems![0]!,
    /1s and 90d/,
  );
});
