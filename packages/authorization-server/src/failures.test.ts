// What the owner and the client see when the server itself cannot go on: a redirect with server_error or
// temporarily_unavailable once it is known where to (or once the owner is), a page before, and JSON for programs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DatabaseUnavailable } from "./store/database.ts";
import type { Database } from "./store/database.ts";
import { openDatabase } from "./store/open.ts";
import type { TestServer } from "./testing/test-server.ts";
import {
  answerOf,
  basic,
  errorIdOf,
  testPassword,
  testRequest as request,
  testSecret,
  testServer,
} from "./testing/test-server.ts";

/** A database whose transactions, or reads, fail on demand. */
interface Breakable extends Database {
  transactionError?: Error;
  readError?: Error;
  /** How many reads still work. */
  readsLeft?: number;
}

function breakable(inner: Database): Breakable {
  const broken: Breakable = {
    dialect: inner.dialect,
    transaction: (work) =>
      broken.transactionError ? Promise.reject(broken.transactionError) : inner.transaction(work),
    read: (work) => {
      const works = broken.readError === undefined || (broken.readsLeft ?? 0) > 0;
      if (broken.readsLeft !== undefined) broken.readsLeft -= 1;
      return works ? inner.read(work) : Promise.reject(broken.readError!);
    },
    script: (transaction, sql) => inner.script(transaction, sql),
    compact: () => inner.compact(),
    close: () => inner.close(),
  };
  return broken;
}

async function breakableServer(
  t: Parameters<typeof testServer>[0],
  flags: readonly string[] = [],
): Promise<{ server: TestServer; database: ReturnType<typeof breakable> }> {
  let database: ReturnType<typeof breakable> | undefined;
  const server = await testServer(t, {
    flags,
    database: async (config, nowMs) => (database = breakable(await openDatabase(config, { nowMs }))),
  });
  await server.client();
  await server.user();
  return { server, database: database! };
}

test("after sign-in, failures are redirected by their own names", async (t) => {
  const { server, database } = await breakableServer(t);
  const browser = server.browser();
  await server.authorize(browser, request);
  database.transactionError = new DatabaseUnavailable("gone");
  const unavailable = answerOf(await browser.open(server.authorizeUrl(request)));
  assert.equal(unavailable.get("error"), "temporarily_unavailable");
  assert.equal(unavailable.get("state"), "xyz");
  database.transactionError = new Error("surprise");
  const broken = answerOf(await browser.open(server.authorizeUrl(request)));
  assert.equal(broken.get("error"), "server_error");
  assert.doesNotMatch(broken.get("error_description") ?? "", /surprise/);
  delete database.transactionError;
  assert.ok((await server.authorize(browser, request)).has("code"));
  const [event] = await server.audit(errorIdOf(broken.get("error_description")));
  assert.equal(event, undefined, "its audit row could not be written");
  assert.ok(
    server.log.some((entry) => JSON.stringify(entry.fields).includes("surprise")),
    "but its log line was",
  );
});

test("before sign-in, failures go to the client as soon as it is known", async (t) => {
  const { server, database } = await breakableServer(t);
  const browser = server.browser();
  await server.authorize(browser, request);
  for (const [failure, error] of [
    [new DatabaseUnavailable("gone"), "temporarily_unavailable"],
    [new Error("surprise"), "server_error"],
  ] as const) {
    database.readError = failure;
    database.readsLeft = 0;
    const unknown = await browser.open(server.authorizeUrl(request));
    assert.equal(unknown.location, undefined, "a client that cannot be looked up gets nothing");
    database.readsLeft = 1;
    const known = await browser.open(server.authorizeUrl(request));
    assert.equal(answerOf(known).get("error"), error, "the client is known, whether somebody is signed in is not");
    delete database.readError;
  }
});

test("before sign-in, failures are pages where errors wait for it", async (t) => {
  const { server, database } = await breakableServer(t, ["--errors-after-sign-in"]);
  const cases = [
    { error: new DatabaseUnavailable("gone"), status: 503 },
    { error: new Error("surprise"), status: 500 },
  ];
  for (const { error, status } of cases) {
    const browser = server.browser();
    const login = await browser.open(server.authorizeUrl(request));
    assert.equal(login.status, 200);
    database.transactionError = error;
    assert.equal((await browser.open(server.authorizeUrl(request))).status, 200, "nothing is written before a sign-in");
    const visit = await browser.signIn(login, "ann", testPassword);
    assert.equal(visit.status, status);
    assert.equal(visit.location, undefined);
    assert.match(visit.body, /Error id/);
    delete database.transactionError;
    database.readError = error;
    assert.equal((await server.browser().open(server.authorizeUrl(request))).status, status);
    delete database.readError;
  }
});

test("programs get JSON: 503 when it will pass, 400 from the token endpoint otherwise", async (t) => {
  const { server, database } = await breakableServer(t);
  const form = { grant_type: "refresh_token", refresh_token: "x" };
  const headers = { authorization: basic("app", testSecret) };
  database.transactionError = new DatabaseUnavailable("gone");
  const unavailable = await server.post("/token", form, headers);
  assert.equal(unavailable.status, 503);
  assert.equal(unavailable.json["error"], "temporarily_unavailable");
  assert.equal(unavailable.headers["retry-after"], "5");
  database.transactionError = new Error("surprise");
  const broken = await server.post("/token", form, headers);
  assert.equal(broken.status, 400);
  assert.equal(broken.json["error"], "server_error");
  assert.equal((await server.post("/revoke", { token: "x" }, headers)).status, 500);
  for (const answer of [unavailable, broken]) {
    assert.equal(answer.headers["content-type"], "application/json;charset=UTF-8");
    assert.equal(answer.headers["cache-control"], "no-store");
  }
});
