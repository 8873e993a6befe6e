// What a crowd without an account can do: nothing that fills the disk, and nothing that keeps others out.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { tries } from "../../../tests/tools/tries.ts";
import type { Asker } from "./crypto/passwords.ts";
import { passwordHasher } from "./crypto/passwords.ts";
import { networkOf } from "./http/client-address.ts";
import { purgeAll } from "./store/purge.ts";
import { countFailure, maxThrottles, passwordThrottle, throttleState, throttleWaitMs } from "./store/throttles.ts";
import type { Browser } from "./testing/browser.ts";
import type { TestServer } from "./testing/test-server.ts";
import {
  answerOf,
  basic,
  testPassword,
  testRedirectUri,
  testRequest as request,
  testSecret,
  testServer,
} from "./testing/test-server.ts";

/** The gateway in front of the server says where each request comes from. */
async function crowdedServer(t: TestContext): Promise<TestServer> {
  const server = await testServer(t, { flags: ["--trusted-proxies", "127.0.0.1"] });
  await server.client();
  await server.user();
  return server;
}

function browserAt(server: TestServer, address: string): Browser {
  const browser = server.browser();
  browser.headers["x-forwarded-for"] = address;
  return browser;
}

async function count(server: TestServer, table: string): Promise<number> {
  const { database } = server.context;
  const row = await database.read((reader) => reader.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`));
  return row!.n;
}

test("who only asks for a sign-in page adds no row", async (t) => {
  const server = await crowdedServer(t);
  const events = await count(server, "audit_events");
  const visits = tries({ short: 40, long: 200 });
  for (let visit = 0; visit < visits; visit += 1) {
    const page = await server.browser().open(server.authorizeUrl({ ...request, state: `s${visit}` }));
    assert.equal(page.status, 200);
    assert.equal((await server.browser().open(`${server.issuer}/account`)).status, 200);
  }
  await server.audit();
  for (const table of ["interactions", "sessions", "throttles"]) assert.equal(await count(server, table), 0, table);
  assert.equal(await count(server, "audit_events"), events);
});

test("one owner's open requests are bounded; the oldest goes first", async (t) => {
  const server = await crowdedServer(t);
  const browser = server.browser();
  await server.authorize(browser, request);
  const first = await browser.open(server.authorizeUrl({ ...request, prompt: "consent" }));
  for (let visit = 0; visit < 60; visit += 1) {
    server.clock.nowMs += 1000;
    await browser.open(server.authorizeUrl({ ...request, prompt: "consent" }));
  }
  assert.ok((await count(server, "interactions")) <= 50);
  assert.match((await browser.open(first.url)).body, /This page has expired/);
});

test("refusals that are repeated are one row with a count, and all have its error id", async (t) => {
  const server = await crowdedServer(t);
  const wrong = { authorization: basic("app", "x".repeat(43)) };
  const ids = new Set<string>();
  for (let guess = 0; guess < 8; guess += 1) {
    const refused = await server.post("/token", { grant_type: "refresh_token", refresh_token: "x" }, wrong);
    ids.add(/error id (\w+)/.exec(String(refused.json["error_description"]))![1]!);
  }
  assert.equal(ids.size, 1);
  const events = await server.audit([...ids][0]);
  assert.deepEqual(
    events.map(({ event, count: times }) => [event, times]),
    [["token refused", 8]],
  );
  assert.equal(server.log.filter(({ level, message }) => level === "warning" && /token/.test(message)).length, 2);
  server.clock.nowMs += 11 * 60_000;
  const later = await server.post("/token", { grant_type: "refresh_token", refresh_token: "x" }, wrong);
  assert.ok(
    ![...ids].some((id) => String(later.json["error_description"]).includes(id)),
    "minutes later it is another event",
  );
});

test("refusals that are all different grow the store by a few rows of each network, and by so many in whole", async (t) => {
  const server = await crowdedServer(t);
  const guess = (id: number, address: string): Promise<unknown> =>
    server.post(
      "/token",
      { grant_type: "refresh_token", refresh_token: "x" },
      { authorization: basic(`client-${id}`, "x".repeat(43)), "x-forwarded-for": address },
    );
  for (let id = 0; id < 200; id += 1) await guess(id, "192.0.2.1");
  await server.audit();
  const ofOne = await count(server, "audit_events");
  assert.ok(ofOne <= 25, `${ofOne} rows of one network`);
  for (let id = 0; id < 1200; id += 1) await guess(id, `198.51.${id >> 8}.${id & 255}`);
  await server.audit();
  const ofAll = await count(server, "audit_events");
  assert.ok(ofAll <= 1010, `${ofAll} rows of all`);
});

test("the right client secret passes, whatever has been guessed before; so does a public client", async (t) => {
  const server = await crowdedServer(t);
  await server.client({ id: "native", isPublic: true, redirectUris: [testRedirectUri] });
  const form = { grant_type: "refresh_token", refresh_token: "x" };
  for (let guess = 0; guess < 100; guess += 1) {
    await server.post("/token", form, { authorization: basic("app", "x".repeat(43)) });
    await server.post("/token", { ...form, client_id: "native", client_secret: "x".repeat(43) });
  }
  const slowed = await server.post("/token", form, { authorization: basic("app", "x".repeat(43)) });
  assert.equal(slowed.status, 429);
  for (const right of [
    await server.post("/token", form, { authorization: basic("app", testSecret) }),
    await server.post("/token", { ...form, client_id: "native" }),
  ]) {
    assert.equal(right.json["error"], "invalid_grant", "it got as far as the grant");
  }
});

test("guesses at an account from many networks do not keep its owner out of a browser that is known", async (t) => {
  const server = await crowdedServer(t);
  const known = browserAt(server, "203.0.113.7");
  assert.ok((await server.authorize(known, request)).has("code"));
  for (let guess = 0; guess < 80; guess += 1) {
    const attacker = browserAt(server, `198.51.100.${guess}`);
    await attacker.signIn(await attacker.open(`${server.issuer}/account`), "ann", "wrong password");
  }
  const stranger = browserAt(server, "203.0.113.8");
  const refused = await stranger.signIn(await stranger.open(`${server.issuer}/account`), "ann", testPassword);
  assert.equal(refused.status, 429);
  assert.match(refused.body, /Try again in \d+ seconds?\./);
  const page = await known.open(server.authorizeUrl({ ...request, prompt: "login" }));
  assert.ok(answerOf(await known.signIn(page, "ann", testPassword)).has("code"));
  // It is known for its owner's account alone, and waits for its own guesses.
  for (let guess = 0; guess < 5; guess += 1) {
    await known.signIn(await known.open(`${server.issuer}/sign-in`), "ann", "wrong password");
  }
  assert.equal((await known.signIn(await known.open(`${server.issuer}/sign-in`), "ann", testPassword)).status, 429);
});

test("a network that guesses at many accounts is slowed down at all of them, and others are not", async (t) => {
  const server = await crowdedServer(t);
  const statuses: number[] = [];
  for (let guess = 0; guess < 120; guess += 1) {
    // One host: IPv6 gives each a /64.
    const attacker = browserAt(server, `2001:db8:1:2::${guess.toString(16)}`);
    const page = await attacker.open(`${server.issuer}/account`);
    statuses.push((await attacker.signIn(page, `user-${guess}`, "wrong password")).status);
  }
  assert.equal(statuses.filter((status) => status === 400).length, 100);
  const other = browserAt(server, "2001:db8:1:3::1");
  const page = await other.open(server.authorizeUrl(request));
  const consent = await other.signIn(page, "ann", testPassword);
  assert.match(consent.body, /name="decision"/);
});

test("a hundred wrong passwords at once from one place keep nobody else out, and busy is no wrong password", async (t) => {
  const server = await crowdedServer(t);
  const pages = await Promise.all(
    Array.from({ length: 100 }, async (_, number) => {
      const attacker = browserAt(server, "192.0.2.1");
      return { attacker, page: await attacker.open(`${server.issuer}/account`), name: `user-${number}` };
    }),
  );
  const owner = browserAt(server, "203.0.113.7");
  const login = await owner.open(server.authorizeUrl(request));
  const guesses = pages.map(({ attacker, page, name }) => attacker.signIn(page, name, "wrong password"));
  const answer = owner.signIn(login, "ann", testPassword);
  assert.match((await answer).body, /name="decision"/);
  const busy = (await Promise.all(guesses)).filter(({ status }) => status === 503);
  assert.ok(busy.length > 0, "the crowd itself waits");
  assert.match(busy[0]!.body, /Try again in \d+ seconds?\./);
  assert.ok(Number(busy[0]!.headers["retry-after"]) >= 1);
  const [one] = pages.filter((_, index) => index > 90);
  server.clock.nowMs += 16 * 60_000;
  for (let guess = 0; guess < 4; guess += 1) {
    assert.equal((await one!.attacker.signIn(one!.page, one!.name, "wrong password")).status, 400);
  }
});

test("who waits for a hash is served network by network, and the newest of the largest crowd gives way", async () => {
  const limits = { concurrent: 1, waitingOfOne: 3, waiting: 4 };
  const hasher = passwordHasher({ memoryKib: 8, iterations: 1, parallelism: 1 }, limits);
  const hashed = await hasher.hash("right");
  const order: string[] = [];
  const ask = async (network: string): Promise<boolean | string> => {
    const verdict = await hasher.verify(hashed, "right", { name: network, isKnown: false });
    const outcome = typeof verdict === "boolean" ? verdict : "busy";
    order.push(`${network} ${outcome}`);
    return outcome;
  };
  await ask("first");
  order.length = 0;
  const all = ["crowd", "crowd", "crowd", "crowd", "crowd", "one", "two"].map(ask);
  await Promise.all(all);
  assert.deepEqual(
    order.filter((each) => each.endsWith("busy")),
    ["crowd busy", "crowd busy"],
  );
  const served = order.filter((each) => each.endsWith("true"));
  assert.deepEqual(served, ["crowd true", "crowd true", "one true", "two true", "crowd true"]);
});

test("a crowd from as many networks as may wait for a hash keeps no owner out of a known browser", async () => {
  const hasher = passwordHasher(
    { memoryKib: 8, iterations: 1, parallelism: 1 },
    { concurrent: 1, waitingOfOne: 3, waiting: 4 },
  );
  const hashed = await hasher.hash("right");
  const order: string[] = [];
  const ask = async (name: string, isKnown: boolean): Promise<void> => {
    const verdict = await hasher.verify(hashed, "right", { name, isKnown });
    order.push(typeof verdict === "boolean" ? name : `${name} busy`);
  };
  await ask("first", false);
  order.length = 0;
  const crowd = ["a", "b", "c", "d", "e", "f"].map((name) => ask(name, false));
  await Promise.all([...crowd, ask("ann", true), ask("ann", true), ask("bob", true)]);
  assert.deepEqual(order, ["f busy", "a", "ann", "b", "bob", "c", "ann", "d", "e"]);
});

test("failed sign-ins from everywhere grow the store by so many rows in whole, and guesses at one account stay counted", async (t) => {
  const server = await crowdedServer(t);
  const { database } = server.context;
  const fail = (subject: string) =>
    database.transaction((transaction) => countFailure(transaction, [{ policy: passwordThrottle, subject }]));
  for (let guess = 0; guess < 5; guess += 1) await fail("ann");
  const isSlowedDown = async (): Promise<boolean> => {
    const ann = [{ policy: passwordThrottle, subject: "ann" }];
    return (await database.read((reader) => throttleState(reader, ann))) > 0;
  };
  assert.ok(await isSlowedDown());
  const expiresAt = server.clock.nowMs + 60_000;
  await database.transaction(async (transaction) => {
    for (let row = 0; row < maxThrottles + 2000; row += 1) {
      await transaction.run("INSERT INTO throttles (id, failures, last_failure_at, expires_at) VALUES (?, 1, ?, ?)", [
        `guess ${row}`,
        server.clock.nowMs,
        expiresAt,
      ]);
    }
  });
  await purgeAll(database, { isIdle: true });
  assert.equal(await count(server, "throttles"), maxThrottles);
  assert.ok(await isSlowedDown());
  server.clock.nowMs += 16 * 60_000;
  await purgeAll(database, { isIdle: true });
  assert.equal(await count(server, "throttles"), 0);
});

test("nobody waits for longer than the cap, also when the clock was set back", () => {
  assert.equal(throttleWaitMs(passwordThrottle, 30, 1_000_000, 1_000_000), 60_000);
  assert.equal(throttleWaitMs(passwordThrottle, 30, 1_000_000, 0), 60_000);
});

for (const [address, network] of [
  ["192.0.2.1", "192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::9", "2001:db8:1:2::/64"],
  ["2001:0db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
] as const) {
  test(`attempts from ${address} are counted for ${network}`, () => assert.equal(networkOf(address), network));
}

test("all networks of one customer of IPv6 have one turn where passwords wait to be checked, and a known browser its owner's", async (t) => {
  const server = await testServer(t, { flags: ["--trusted-proxies", "127.0.0.1"] });
  await server.client();
  const name = await server.user();
  const verify = t.mock.method(server.context.passwords, "verify");
  const known = browserAt(server, "2001:db8:1:2::9");
  for (const browser of [known, browserAt(server, "2001:db8:1:3::9"), browserAt(server, "192.0.2.1"), known]) {
    await browser.signIn(await browser.open(`${server.issuer}/sign-in`), "ann", testPassword);
  }
  const anybody = (site: string): Asker => ({ name: site, isKnown: false });
  assert.deepEqual(
    verify.mock.calls.map(({ arguments: [, , asker] }) => asker),
    [anybody("2001:db8:1::/48"), anybody("2001:db8:1::/48"), anybody("192.0.2.1"), { name, isKnown: true }],
  );
});

test("a clean-up goes on until nothing is due, and gives the space back", async (t) => {
  const server = await crowdedServer(t);
  const { database } = server.context;
  await database.transaction(async (transaction) => {
    for (let row = 0; row < 5000; row += 1) {
      await transaction.run("INSERT INTO revoked_tokens (id, expires_at) VALUES (?, ?)", [
        `${row}-${"x".repeat(1000)}`,
        1,
      ]);
    }
  });
  const file = path.join(server.dataDir, "store.sqlite");
  const bytes = (): number =>
    [file, `${file}-wal`].reduce((sum, each) => sum + (fs.statSync(each, { throwIfNoEntry: false })?.size ?? 0), 0);
  const full = bytes();
  while ((await count(server, "revoked_tokens")) > 0) await purgeAll(database, { isIdle: true });
  for (let turn = 0; turn < 5; turn += 1) await purgeAll(database, { isIdle: true });
  assert.equal(await count(server, "revoked_tokens"), 0);
  if (database.dialect === "sqlite") assert.ok(bytes() < full / 4, `${full} → ${bytes()} bytes`);
});

test("a request that another site posts is asked again by the browser, with its cookies", async (t) => {
  const server = await crowdedServer(t);
  const browser = server.browser();
  await server.authorize(browser, request);
  const open = await browser.open(`${server.issuer}/sign-in`);
  const form = new URLSearchParams({ ...request, prompt: "none", state: "a b&c" }).toString();
  // As browsers do: no cookie that is Lax goes with it.
  const posted = await server.browser().request("POST", `${server.issuer}/authorize`, form);
  assert.equal(posted.status, 303);
  assert.equal(posted.headers["set-cookie"], undefined, "the page that is open stays good");
  const answer = answerOf(await browser.open(posted.location!));
  assert.deepEqual([answer.has("code"), answer.get("state")], [true, "a b&c"]);
  const signedIn = await browser.signIn(open, "ann", testPassword);
  assert.equal(signedIn.status, 200);
});
