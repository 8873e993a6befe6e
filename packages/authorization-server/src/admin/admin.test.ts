// Administration while the server runs: what is taken back ends at once, and each step leaves a trace.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Browser } from "../testing/browser.ts";
import type { TestServer } from "../testing/test-server.ts";
import { answerOf, basic, testRedirectUri, testSecret, testServer } from "../testing/test-server.ts";
import { removeClient, replaceClientSecret, updateClient } from "./clients.ts";
import { endUserSessions, grantsOf, revokeGrants, sessionsOf } from "./grants.ts";
import { changeUserPassword, removeUser, updateUserSettings } from "./users.ts";

const request = {
  client_id: "app",
  response_type: "code",
  redirect_uri: testRedirectUri,
  scope: "profile offline_access",
};
const app = { authorization: basic("app", testSecret) };
const rules = { issuerIsHttp: true };

interface SignedIn {
  readonly server: TestServer;
  readonly browser: Browser;
  readonly refreshToken: string;
}

async function signedIn(t: Parameters<typeof testServer>[0]): Promise<SignedIn> {
  const server = await testServer(t);
  await server.client();
  await server.user();
  const browser = server.browser();
  const code = (await server.authorize(browser, request)).get("code")!;
  const form = { grant_type: "authorization_code", code, redirect_uri: testRedirectUri };
  const tokens = await server.post("/token", form, app);
  return { server, browser, refreshToken: String(tokens.json["refresh_token"]) };
}

async function refreshError({ server, refreshToken }: SignedIn): Promise<unknown> {
  return (await server.post("/token", { grant_type: "refresh_token", refresh_token: refreshToken }, app)).json["error"];
}

async function silentError({ server, browser }: SignedIn): Promise<string | null> {
  return answerOf(await browser.open(server.authorizeUrl({ ...request, prompt: "none" }))).get("error");
}

test("a grant that is taken back ends its tokens and is asked for again", async (t) => {
  const state = await signedIn(t);
  const { database } = state.server.context;
  const [grant] = (await grantsOf(database, { userName: "ann", clientId: "app" })).value!;
  assert.ok(grant);
  assert.equal(grant.userName, "ann");
  assert.deepEqual(grant.scope, ["profile", "offline_access"]);
  assert.equal((await revokeGrants(database, { id: grant.id })).value, 1);
  assert.equal(await refreshError(state), "invalid_grant");
  assert.equal(await silentError(state), "consent_required");
  assert.match((await revokeGrants(database, { id: grant.id })).problems!.join(), /no grant/);
  assert.equal((await revokeGrants(database, { clientId: "app" })).value, 0);
});

test("ending sessions signs out and leaves refresh tokens alone", async (t) => {
  const state = await signedIn(t);
  const { database } = state.server.context;
  const [session] = (await sessionsOf(database, "ann")).value!;
  assert.match((await endUserSessions(database, "ann", "other")).problems!.join(), /no session/);
  assert.equal((await endUserSessions(database, "ann", session!.id)).value, 1);
  assert.equal(await silentError(state), "login_required");
  assert.equal(await refreshError(state), undefined);
});

const endings: readonly { name: string; run: (server: TestServer) => Promise<{ problems?: readonly string[] }> }[] = [
  { name: "disabled", run: ({ context }) => updateUserSettings(context.database, "ann", { disabled: true }) },
  { name: "deleted", run: ({ context }) => removeUser(context.database, "ann") },
  {
    name: "given a new password",
    run: ({ context }) => changeUserPassword(context.database, context.passwords, "ann", "another password"),
  },
];
for (const { name, run } of endings) {
  test(`a user who is ${name} has neither sessions nor tokens left`, async (t) => {
    const state = await signedIn(t);
    assert.equal((await run(state.server)).problems, undefined);
    assert.equal(await refreshError(state), "invalid_grant");
    assert.equal(await silentError(state), "login_required");
  });
}

test("a client's new secret, new settings and end take effect with the next request", async (t) => {
  const state = await signedIn(t);
  const { database } = state.server.context;
  await updateClient(database, rules, "app", { scope: "email", name: "Renamed" });
  const narrowed = answerOf(await state.browser.open(state.server.authorizeUrl(request)));
  assert.equal(narrowed.get("error"), "invalid_scope");
  await replaceClientSecret(database, "app");
  assert.equal(await refreshError(state), "invalid_client");
  await removeClient(database, "app");
  assert.equal((await state.browser.open(state.server.authorizeUrl(request))).status, 400);
  const events = (await state.server.audit()).map(({ event }) => event);
  for (const event of ["client created", "client changed", "client secret replaced", "client deleted", "user created"])
    assert.ok(events.includes(event), event);
});
