// What applications hear when a session ends: logout tokens that a foreign library accepts, from a server on a real
// port, whichever way the session ends; clients that do not answer; and refresh tokens that end with it.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { createRemoteJWKSet, decodeJwt, jwtVerify } from "jose";
import type { JWTPayload } from "jose";
import { waitFor as waitForCondition } from "../../../../tests/tools/processes.ts";
import { createClient, updateClient } from "../admin/clients.ts";
import { endUserSessions } from "../admin/grants.ts";
import { changeUserPassword, removeUser, updateUserSettings } from "../admin/users.ts";
import { maxQueuedOfClient } from "../store/logout-notices.ts";
import { LogoutCourier } from "./logout-courier.ts";
import type { Browser, Visit } from "../testing/browser.ts";
import { overHttp } from "../testing/listening-server.ts";
import type { ListeningServer } from "../testing/listening-server.ts";
import { listeningServer } from "../testing/listening-server.ts";
import type { TestServer } from "../testing/test-server.ts";
import { answerOf, basic, testPassword, testRedirectUri, testSecret, testServer } from "../testing/test-server.ts";

const app = { authorization: basic("app", testSecret) };
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";

function waitFor(condition: () => boolean | Promise<boolean>): Promise<true> {
  return waitForCondition(async () => (await condition()) && true, { what: "the courier" });
}

interface Receiver {
  readonly uri: string;
  readonly tokens: string[];
}

/** An application's back-channel logout endpoint; it answers 200 unless told otherwise. */
async function receiver(t: TestContext, answer: RequestListener = (_, response) => response.end()): Promise<Receiver> {
  const tokens: string[] = [];
  const server = createServer((request, response) => {
    void request.toArray().then((chunks) => {
      tokens.push(new URLSearchParams(Buffer.concat(chunks).toString()).get("logout_token") ?? "none");
      answer(request, response);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/logout`, tokens };
}

async function listening(t: TestContext): Promise<ListeningServer> {
  const server = await listeningServer();
  t.after(() => server[Symbol.asyncDispose]());
  await server.user();
  return server;
}

async function signIn(server: ListeningServer, browser: Browser, more: Record<string, string> = {}): Promise<Visit> {
  const parameters = { client_id: "app", response_type: "code", redirect_uri: server.redirectUri, scope: "openid" };
  const query = new URLSearchParams({ ...parameters, ...more }).toString();
  let visit = await browser.open(`${server.issuer}/authorize?${query}`);
  if (visit.body.includes('name="password"')) visit = await browser.signIn(visit, "ann", testPassword);
  if (visit.body.includes('name="decision"')) visit = await browser.decide(visit, "allow");
  return visit;
}

async function idTokenOf(server: ListeningServer, visit: Visit): Promise<string> {
  const code = answerOf(visit).get("code") ?? "";
  const form = { grant_type: "authorization_code", code, redirect_uri: server.redirectUri };
  const headers = { ...app, "content-type": "application/x-www-form-urlencoded" };
  const body = new URLSearchParams(form).toString();
  const answer = await overHttp({ method: "POST", url: `${server.issuer}/token`, headers, body });
  return String((JSON.parse(answer.body) as { id_token?: string }).id_token);
}

/** As OpenID Connect Back-Channel Logout 1.0 §2.6 has it, by a library that is not ours. */
async function verified(server: ListeningServer, token: string): Promise<JWTPayload> {
  const { payload } = await jwtVerify(token, createRemoteJWKSet(new URL(`${server.issuer}/jwks`)), {
    issuer: server.issuer,
    audience: "app",
    typ: "logout+jwt",
    requiredClaims: ["iat", "exp", "jti", "sub", "sid", "events"],
  });
  assert.equal("nonce" in payload, false);
  assert.deepEqual(payload["events"], { [logoutEvent]: {} });
  assert.ok(payload.exp! - payload.iat! <= 120);
  return payload;
}

const ends: ReadonlyArray<{
  readonly name: string;
  readonly end: (server: ListeningServer, browser: Browser, idToken: string) => Promise<unknown>;
}> = [
  {
    name: "a logout",
    end: (server, browser, idToken) => browser.open(`${server.issuer}/logout?id_token_hint=${idToken}`),
  },
  {
    name: "the owner, on the account page of another browser",
    end: async (server) => {
      const other = server.browser();
      const page = await other.signIn(await other.open(`${server.issuer}/sign-in`), "ann", testPassword);
      return other.submit(page, /\/end$/, {});
    },
  },
  {
    name: "signing out of the account page",
    end: async (server, browser) => browser.submit(await browser.open(`${server.issuer}/account`), /\/sign-out$/, {}),
  },
  {
    name: "a new password",
    end: async (server, browser) => {
      const fields = { current: testPassword, new: "another good long passphrase" };
      return browser.submit(await browser.open(`${server.issuer}/account`), /\/password$/, fields);
    },
  },
  {
    name: "somebody else's sign-in in the same browser",
    end: async (server, browser) => {
      await server.user("bob");
      return browser.signIn(await browser.open(`${server.issuer}/sign-in`), "bob", testPassword);
    },
  },
  {
    name: "an administrator",
    end: ({ running }) => endUserSessions(running.context.database, "ann"),
  },
  {
    name: "an administrator's new password",
    end: ({ running: { context } }) =>
      changeUserPassword(context.database, context.passwords, "ann", "another good one"),
  },
  {
    name: "disabling the user",
    end: ({ running }) => updateUserSettings(running.context.database, "ann", { disabled: true }),
  },
  { name: "deleting the user", end: ({ running }) => removeUser(running.context.database, "ann") },
];

for (const { name, end } of ends) {
  test(`a session that ends by ${name} is told of, by its sid, once`, async (t) => {
    const server = await listening(t);
    const { uri, tokens } = await receiver(t);
    await server.client({ backchannelLogoutUri: uri });
    const browser = server.browser();
    const idToken = await idTokenOf(server, await signIn(server, browser));
    await idTokenOf(server, await signIn(server, browser));
    await end(server, browser, idToken);
    await waitFor(() => tokens.length > 0);
    const claims = await verified(server, tokens[0]!);
    assert.deepEqual([claims.sub, claims["sid"]], [decodeJwt(idToken).sub, decodeJwt(idToken)["sid"]]);
    await waitFor(async () => (await noticesOf(server)) === 0);
    assert.equal(tokens.length, 1);
  });
}

async function noticesOf({ running }: Pick<ListeningServer, "running">): Promise<number> {
  const { database } = running.context;
  const row = await database.read((reader) => reader.get<{ n: number }>("SELECT count(*) AS n FROM logout_notices"));
  return row!.n;
}

test("the same person's next sign-in renews auth_time and keeps the sid, so that the end is still told", async (t) => {
  const server = await listening(t);
  const { uri, tokens } = await receiver(t);
  await server.client({ backchannelLogoutUri: uri });
  const browser = server.browser();
  const first = decodeJwt(await idTokenOf(server, await signIn(server, browser)));
  const planted = browser.cookies.get("tulle-session") ?? [...browser.cookies.values()].join();
  const again = decodeJwt(await idTokenOf(server, await signIn(server, browser, { prompt: "login" })));
  assert.equal(again["sid"], first["sid"]);
  assert.notEqual([...browser.cookies.values()].join(), planted, "with another secret");
  assert.equal(await noticesOf(server), 0);
  await endUserSessions(server.running.context.database, "ann");
  await waitFor(() => tokens.length > 0);
  assert.equal((await verified(server, tokens[0]!))["sid"], first["sid"]);
});

test("a code that is redeemed after its session ended gives nothing to a client that would have heard of the end", async (t) => {
  const server = await listening(t);
  const { uri } = await receiver(t);
  await server.client({ backchannelLogoutUri: uri });
  const visit = await signIn(server, server.browser());
  await endUserSessions(server.running.context.database, "ann");
  assert.equal(await idTokenOf(server, visit), "undefined");
});

interface Stepped extends TestServer {
  readonly courier: LogoutCourier;
}

/** A server whose clock the test moves, with one session in which the clients `app` and the others are. */
async function stepped(t: TestContext, uris: Readonly<Record<string, string>>): Promise<Stepped> {
  const server = await testServer(t);
  await server.user();
  const browser = server.browser();
  for (const [id, backchannelLogoutUri] of Object.entries(uris)) {
    await server.client({ id, backchannelLogoutUri });
    const request = { client_id: id, response_type: "code", redirect_uri: testRedirectUri, scope: "openid" };
    assert.ok((await server.authorize(browser, request)).has("code"));
  }
  const courier = new LogoutCourier(server.context);
  t.after(() => courier.close());
  await endUserSessions(server.context.database, "ann");
  return { ...server, courier };
}

async function undelivered(server: TestServer): Promise<readonly (string | undefined)[]> {
  return (await server.audit())
    .filter(({ event }) => event === "back-channel logout not delivered")
    .map(({ clientId, reason }) => `${clientId}: ${reason}`);
}

async function settled(server: TestServer, condition: () => boolean | Promise<boolean>): Promise<void> {
  await waitFor(condition);
  await server.context.audit.flush();
}

async function waiting(server: TestServer): Promise<number> {
  return noticesOf({ running: server });
}

test("a client that fails is tried five times, further and further apart, and then written into the audit log", async (t) => {
  const { uri, tokens } = await receiver(t, (_, response) => response.writeHead(503).end());
  const server = await stepped(t, { app: uri });
  for (const [tries, waitMs] of [5000, 30_000, 120_000, 600_000].entries()) {
    await server.courier.turn();
    await waitFor(() => tokens.length === tries + 1);
    await server.courier.turn();
    server.clock.nowMs += waitMs + 4999;
    await server.courier.turn();
    assert.equal(tokens.length, tries + 1, "not before its time");
    server.clock.nowMs += 1;
  }
  assert.deepEqual(await undelivered(server), []);
  await server.courier.turn();
  await settled(server, async () => (await waiting(server)) === 0);
  assert.equal(tokens.length, 5);
  assert.equal(new Set(tokens.map((token) => decodeJwt(token).jti)).size, 5, "each with a jti of its own");
  assert.match((await undelivered(server)).join(), /app: the answer was 503; tries: 5; session /);
});

test("what no further try would change is given up at once, and a redirect is not followed", async (t) => {
  const elsewhere = await receiver(t);
  const redirecting = await receiver(t, (_, response) => response.writeHead(307, { location: elsewhere.uri }).end());
  const refusing = await receiver(t, (_, response) => response.writeHead(400).end('{"error":"invalid_request"}'));
  const server = await stepped(t, { one: redirecting.uri, two: refusing.uri });
  await server.courier.turn();
  await settled(server, async () => (await waiting(server)) === 0);
  const told = (await undelivered(server)).join();
  assert.match(told, /one: the answer was 307; tries: 1/);
  assert.match(told, /two: the answer was 400; tries: 1/);
  assert.deepEqual(elsewhere.tokens, []);
});

test("neither an answer without end nor one that never begins holds up another client", async (t) => {
  const endless = await receiver(t, (_, response) => {
    response.on("error", () => undefined);
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536)));
    };
    response.on("drain", more);
    more();
  });
  const silent = await receiver(t, () => undefined);
  const sound = await receiver(t);
  const server = await stepped(t, { a: endless.uri, b: silent.uri, c: sound.uri });
  await server.courier.turn();
  await waitFor(() => sound.tokens.length === 1 && silent.tokens.length === 1);
  await settled(server, async () => (await waiting(server)) === 1);
  await server.courier.close();
  assert.equal(await waiting(server), 1, "a closing server leaves it to the next one");
  const next = new LogoutCourier(server.context);
  t.after(() => next.close());
  server.clock.nowMs += 10_000;
  await next.turn();
  await waitFor(() => silent.tokens.length === 2);
});

test("of hundreds of sessions that end at once, a client gets four at a time", async (t) => {
  let open = 0;
  let most = 0;
  const { uri, tokens } = await receiver(t, (_, response) => {
    most = Math.max(most, (open += 1));
    setImmediate(() => {
      open -= 1;
      response.end();
    });
  });
  const server = await stepped(t, { app: uri });
  await server.context.database.transaction(async (transaction) => {
    for (let count = 1; count < 300; count += 1) {
      await transaction.run(
        `INSERT INTO logout_notices (session_id, client_id, user_id, attempts, due_at)
         VALUES (?, 'app', 'usr_x', 0, ?)`,
        [`session-${count}`, server.clock.nowMs],
      );
    }
  });
  await server.courier.turn();
  await waitFor(() => tokens.length >= 300);
  assert.ok(most <= 4, `${most} at once`);
});

test("two processes deliver a notice once, and a disabled client hears nothing", async (t) => {
  const { uri, tokens } = await receiver(t);
  const off = await receiver(t);
  const server = await stepped(t, { app: uri, off: off.uri });
  await updateClient(server.context.database, { issuerIsHttp: true }, "off", { disabled: true });
  const other = new LogoutCourier(server.context);
  t.after(() => other.close());
  await Promise.all([server.courier.turn(), other.turn()]);
  await settled(server, async () => (await waiting(server)) === 0);
  assert.deepEqual([tokens.length, off.tokens.length], [1, 0]);
});

test("an administrator registers a back-channel logout URI that is one, and nobody else can", async (t) => {
  const server = await testServer(t);
  const cases: ReadonlyArray<readonly [string, boolean, RegExp | undefined]> = [
    ["https://app.example/logout?a=1", true, undefined],
    ["http://app.default.svc/logout", false, undefined],
    ["http://app.example/logout", true, /confidential clients alone/],
    ["file:///etc/passwd", false, /neither https nor http/],
    ["/logout", false, /not an absolute URI/],
    ["https://app.example/#x", false, /has a fragment/],
    ["https://me:secret@app.example/", false, /user name or password/],
  ];
  for (const [index, [backchannelLogoutUri, isPublic, problem]] of cases.entries()) {
    const wanted = { id: `c${index}`, isPublic, redirectUris: [testRedirectUri], backchannelLogoutUri };
    const { problems } = await createClient(server.context.database, { issuerIsHttp: true }, wanted);
    if (problem === undefined) assert.equal(problems, undefined);
    else assert.match(problems?.join() ?? "", problem);
  }
  for (const path of ["/register", "/reg", "/connect/register"])
    assert.equal(
      (await server.send({ method: "POST", url: server.issuer + path, headers: {}, body: "{}" })).status,
      404,
    );
});

test("a logout token is neither a hint nor an access token", async (t) => {
  const { uri, tokens } = await receiver(t);
  const server = await stepped(t, { app: uri });
  await server.courier.turn();
  await waitFor(() => tokens.length === 1);
  const request = { client_id: "app", response_type: "code", redirect_uri: testRedirectUri, scope: "openid" };
  const hinted = await server.browser().open(server.authorizeUrl({ ...request, id_token_hint: tokens[0]! }));
  assert.equal(answerOf(hinted).get("error"), "login_required");
  assert.equal((await server.browser().open(`${server.issuer}/logout?id_token_hint=${tokens[0]}`)).status, 400);
  assert.equal((await server.post("/introspect", { token: tokens[0]! }, app)).json["active"], false);
});

test("a client that answers none of its notices takes no room from the others, and what it will never hear is told", async (t) => {
  const { uri, tokens } = await receiver(t);
  const server = await testServer(t);
  await server.user();
  await server.client({ id: "dead", backchannelLogoutUri: "http://127.0.0.1:9/logout" });
  await server.client({ id: "app", backchannelLogoutUri: uri });
  const waitingFor = async (id: string): Promise<number> => {
    const sql = "SELECT count(*) AS count FROM logout_notices WHERE client_id = ?";
    const row = await server.context.database.read((reader) => reader.get<{ count: number }>(sql, [id]));
    return Number(row?.count);
  };
  await server.context.database.transaction(async (transaction) => {
    for (let at = 0; at < maxQueuedOfClient; at += 1)
      await transaction.run("INSERT INTO logout_notices VALUES (?, 'dead', 'nobody', ?, ?)", [
        `old-${at}`,
        at % 5,
        1e15,
      ]);
  });
  const browser = server.browser();
  for (const id of ["dead", "app"]) {
    const request = { client_id: id, response_type: "code", redirect_uri: testRedirectUri, scope: "openid" };
    assert.ok((await server.authorize(browser, request)).has("code"));
  }
  await endUserSessions(server.context.database, "ann");
  const courier = new LogoutCourier(server.context);
  t.after(() => courier.close());
  await courier.round();
  await settled(server, async () => tokens.length === 1 && (await waitingFor("app")) === 0);
  assert.equal(await waitingFor("dead"), maxQueuedOfClient);
  assert.deepEqual(await undelivered(server), [
    `dead: more than ${maxQueuedOfClient} waited for this client: 1 are given up`,
  ]);
  const sql = "SELECT attempts FROM logout_notices WHERE client_id = 'dead' AND session_id NOT LIKE 'old-%'";
  const own = await server.context.database.read((reader) => reader.get<{ attempts: number }>(sql));
  assert.ok(own, "what was tried most often goes first");
});

test("refresh tokens end with the session where the client is registered so, and outlive it elsewhere", async (t) => {
  const server = await testServer(t);
  await server.user();
  await server.client({ id: "app" });
  await server.client({ id: "bound", refreshEndsWithSession: true });
  const browser = server.browser();
  const tokens = new Map<string, Readonly<Record<string, unknown>>>();
  const refresh = async (id: string): Promise<unknown> => {
    const form = { grant_type: "refresh_token", refresh_token: String(tokens.get(id)!["refresh_token"]) };
    const answer = await server.post("/token", form, { authorization: basic(id, testSecret) });
    if (answer.status === 200) tokens.set(id, answer.json);
    return answer.json["error"];
  };
  const begin = async (): Promise<void> => {
    for (const id of ["app", "bound"]) {
      const scope = "openid offline_access";
      const request = { client_id: id, response_type: "code", redirect_uri: testRedirectUri, scope };
      const code = (await server.authorize(browser, request)).get("code")!;
      const form = { grant_type: "authorization_code", code, redirect_uri: testRedirectUri };
      tokens.set(id, (await server.post("/token", form, { authorization: basic(id, testSecret) })).json);
    }
  };
  await begin();
  for (let hours = 0; hours < 60; hours += 20) {
    server.clock.nowMs += 20 * 3_600_000;
    assert.equal(await refresh("bound"), undefined, "its use keeps the session from being idle");
  }
  await endUserSessions(server.context.database, "ann");
  assert.equal(await refresh("app"), undefined);
  const token = String(tokens.get("bound")!["refresh_token"]);
  const inspected = await server.post("/introspect", { token }, { authorization: basic("bound", testSecret) });
  assert.equal(inspected.json["active"], false);
  assert.equal(await refresh("bound"), "invalid_grant");
  await begin();
  server.clock.nowMs += 25 * 3_600_000;
  assert.equal(await refresh("bound"), "invalid_grant", "an idle session is over too");
  const old = tokens.get("bound")!;
  await begin();
  tokens.set("bound", old);
  assert.equal(await refresh("bound"), "invalid_grant", "and a sign-in with its cookie does not bring it back");
  assert.equal(await refresh("app"), undefined);
});

test("the server says what it tells of ended sessions", async (t) => {
  const server = await testServer(t);
  const url = `${server.issuer}/.well-known/openid-configuration`;
  const { body } = await server.send({ method: "GET", url, headers: {}, body: undefined });
  const metadata = JSON.parse(body) as Record<string, unknown>;
  assert.equal(metadata["backchannel_logout_supported"], true);
  assert.equal(metadata["backchannel_logout_session_supported"], true);
});
