// Mainstream client libraries, unchanged, each through what it supports of the code flow, refresh and revocation.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage } from "node:http";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import * as oauth from "oauth4webapi";
import * as openid from "openid-client";
import OAuth2Strategy from "passport-oauth2";
import { AuthorizationCode, ClientCredentials } from "simple-oauth2";
import { oauthClientPackages, pythonEnvironment } from "../../../tests/tools/python-environment.ts";
import type { ListeningServer } from "./testing/listening-server.ts";
import { listeningServer } from "./testing/listening-server.ts";
import { testPassword, testSecret } from "./testing/test-server.ts";

let server: ListeningServer;
const awkwardSecret = `${"s".repeat(32)}+/=: %x`;

before(async () => {
  server = await listeningServer();
  await server.client({ postLogoutRedirectUris: [server.redirectUri.replace("/cb", "/bye")] });
  await server.client({ id: "awkward", secret: awkwardSecret });
  await server.client({ id: "native", isPublic: true, redirectUris: ["http://127.0.0.1/cb"] });
  await server.client({ id: "job", grants: ["client_credentials"], scope: "orders.read" });
  await server.user();
});

after(() => server[Symbol.asyncDispose]());

/** What the owner does with the address that a library makes; answers where the browser ends at the client. */
async function visit(url: string): Promise<URL> {
  const browser = server.browser();
  let page = await browser.signIn(await browser.open(url), "ann", testPassword);
  if (page.location === undefined) page = await browser.decide(page, "allow");
  return new URL(page.location ?? assert.fail(page.body));
}

for (const [id, secret] of [
  ["app", testSecret],
  ["awkward", awkwardSecret],
] as const) {
  test(`openid-client, client ${id}: discovery, code with PKCE and nonce, userinfo, refresh, revocation, introspection, logout`, async () => {
    const config = await openid.discovery(new URL(server.issuer), id, secret, openid.ClientSecretBasic(secret), {
      execute: [openid.allowInsecureRequests],
    });
    const verifier = openid.randomPKCECodeVerifier();
    const nonce = openid.randomNonce();
    const state = openid.randomState();
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: server.redirectUri,
      scope: "openid profile email offline_access",
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
      nonce,
      state,
    });
    const tokens = await openid.authorizationCodeGrant(config, await visit(url.href), {
      pkceCodeVerifier: verifier,
      expectedNonce: nonce,
      expectedState: state,
      idTokenExpected: true,
    });
    const claims = tokens.claims()!;
    const user = await openid.fetchUserInfo(config, tokens.access_token, claims.sub);
    assert.equal(user.preferred_username, "ann");
    assert.equal(user.email, "ann@example.com");
    const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token!);
    const active = await openid.tokenIntrospection(config, refreshed.access_token);
    assert.equal(active.active, true);
    await openid.tokenRevocation(config, refreshed.refresh_token!);
    assert.equal((await openid.tokenIntrospection(config, refreshed.access_token)).active, false);
    await assert.rejects(
      openid.refreshTokenGrant(config, refreshed.refresh_token!),
      /invalid_grant|ResponseBodyError|error/,
    );
    if (id !== "app") return;
    const bye = server.redirectUri.replace("/cb", "/bye");
    const logout = openid.buildEndSessionUrl(config, {
      id_token_hint: tokens.id_token!,
      post_logout_redirect_uri: bye,
    });
    const left = await server.browser().open(logout.href);
    assert.equal(left.location, bye);
  });
}

test("oauth4webapi: public client with a loopback port of its own, DPoP-less, and the errors it shows", async () => {
  const issuer = new URL(server.issuer);
  const insecure = { [oauth.allowInsecureRequests]: true };
  const metadata = await oauth.processDiscoveryResponse(
    issuer,
    await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure }),
  );
  const client: oauth.Client = { client_id: "native" };
  const verifier = oauth.generateRandomCodeVerifier();
  const url = new URL(metadata.authorization_endpoint!);
  const redirectUri = "http://127.0.0.1:51234/cb";
  const parameters = {
    client_id: "native",
    redirect_uri: redirectUri,
    response_type: "code",
    scope: "openid offline_access",
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  };
  url.search = new URLSearchParams(parameters).toString();
  const answer = oauth.validateAuthResponse(metadata, client, await visit(url.href), oauth.expectNoState);
  const response = await oauth.authorizationCodeGrantRequest(
    metadata,
    client,
    oauth.None(),
    answer,
    redirectUri,
    verifier,
    insecure,
  );
  const tokens = await oauth.processAuthorizationCodeResponse(metadata, client, response, { requireIdToken: true });
  const again = await oauth.refreshTokenGrantRequest(metadata, client, oauth.None(), tokens.refresh_token!, insecure);
  const refreshed = await oauth.processRefreshTokenResponse(metadata, client, again);
  const revoked = await oauth.revocationRequest(metadata, client, oauth.None(), refreshed.refresh_token!, insecure);
  await oauth.processRevocationResponse(revoked);
  const wrong = await oauth.clientCredentialsGrantRequest(
    metadata,
    { client_id: "job" },
    oauth.ClientSecretBasic("x".repeat(43)),
    new URLSearchParams(),
    insecure,
  );
  await assert.rejects(oauth.processClientCredentialsResponse(metadata, { client_id: "job" }, wrong), {
    error: "invalid_client",
  });
});

test("simple-oauth2: code, refresh, revocation and client credentials, by header and by body", async () => {
  for (const authorizationMethod of ["header", "body"] as const) {
    const token = { tokenHost: server.issuer, tokenPath: "/token" };
    const auth = { ...token, authorizePath: "/authorize", revokePath: "/revoke" };
    const client = new AuthorizationCode({
      client: { id: "app", secret: testSecret },
      auth,
      options: { authorizationMethod },
    });
    const url = client.authorizeURL({ redirect_uri: server.redirectUri, scope: "profile offline_access", state: "s" });
    const code = (await visit(url)).searchParams.get("code")!;
    const first = await client.getToken({ code, redirect_uri: server.redirectUri });
    const next = await first.refresh();
    assert.notEqual(next.token["refresh_token"], first.token["refresh_token"]);
    await next.revokeAll();
    await assert.rejects(next.refresh(), /400/);
    const job = new ClientCredentials({
      client: { id: "job", secret: testSecret },
      auth: token,
      options: { authorizationMethod },
    });
    assert.equal((await job.getToken({})).token["scope"], "orders.read");
  }
});

test("passport-oauth2: code with PKCE and state, and its profile step", async () => {
  interface Session {
    session: Record<string, unknown>;
    query: Record<string, string>;
    url: string;
    headers: IncomingMessage["headers"];
  }
  const options = {
    authorizationURL: `${server.issuer}/authorize`,
    tokenURL: `${server.issuer}/token`,
    clientID: "app",
    clientSecret: testSecret,
    callbackURL: server.redirectUri,
    scope: ["profile", "offline_access"],
    state: true,
    pkce: true,
  };
  const strategy = new OAuth2Strategy(
    options,
    (accessToken: string, refreshToken: string, _profile: unknown, done: (error: null, user: unknown) => void) =>
      done(null, { accessToken, refreshToken }),
  );
  const session = {};
  const run = (query: Record<string, string>): Promise<{ redirect?: string; user?: Record<string, string> }> =>
    new Promise((resolve, reject) => {
      const request: Session = { session, query, url: "/cb", headers: {} };
      const attempt = Object.assign(Object.create(strategy) as Record<string, unknown>, {
        redirect: (redirect: string) => resolve({ redirect }),
        success: (user: Record<string, string>) => resolve({ user }),
        fail: (challenge: unknown) => reject(new Error(JSON.stringify(challenge))),
        error: reject,
      });
      (attempt as unknown as { authenticate(request: Session): void }).authenticate(request);
    });
  const { redirect } = await run({});
  const back = await visit(redirect!);
  const { user } = await run(Object.fromEntries(back.searchParams));
  assert.equal(user!["accessToken"]!.split(".").length, 3);
  assert.match(user!["refreshToken"]!, /^[\w-]{43}$/);
});

const pythonClients = `
import json, sys, os
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
settings = json.loads(sys.argv[1])
issuer, redirect_uri = settings["issuer"], settings["redirect_uri"]
client_id, secret, visit = settings["id"], settings["secret"], settings["visit"]
import requests
def walk(url):
    return requests.get(visit, params={"url": url}).text

from authlib.integrations.requests_client import OAuth2Session
for method in ("client_secret_basic", "client_secret_post"):
    session = OAuth2Session(client_id, secret, scope="profile offline_access", redirect_uri=redirect_uri,
        token_endpoint_auth_method=method, revocation_endpoint_auth_method=method, code_challenge_method="S256")
    verifier = "v" * 48
    url, state = session.create_authorization_url(issuer + "/authorize", code_verifier=verifier)
    token = session.fetch_token(issuer + "/token", authorization_response=walk(url), code_verifier=verifier)
    refreshed = session.refresh_token(issuer + "/token", refresh_token=token["refresh_token"])
    assert refreshed["refresh_token"] != token["refresh_token"]
    answer = session.revoke_token(issuer + "/revoke", token=refreshed["refresh_token"])
    assert answer.status_code == 200, answer.text
    print("authlib", method)

from requests_oauthlib import OAuth2Session as Session
from requests.auth import HTTPBasicAuth
session = Session(client_id, redirect_uri=redirect_uri, scope=["profile", "offline_access"], pkce="S256")
url, state = session.authorization_url(issuer + "/authorize")
token = session.fetch_token(issuer + "/token", authorization_response=walk(url), client_secret=secret)
refreshed = session.refresh_token(issuer + "/token", auth=HTTPBasicAuth(client_id, secret))
assert refreshed["refresh_token"] != token["refresh_token"]
answer = requests.post(issuer + "/revoke", data={"token": refreshed["refresh_token"]}, auth=HTTPBasicAuth(client_id, secret))
assert answer.status_code == 200, answer.text
print("requests-oauthlib")
`;

test("Authlib and requests-oauthlib: code with PKCE, refresh and revocation, also with an awkward secret", async (t) => {
  const python = await pythonEnvironment(oauthClientPackages);
  // The owner's browser, for the Python side.
  const visitor = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://visitor").searchParams.get("url")!;
    visit(url).then(
      (back) => response.end(back.href),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  }).listen(0, "127.0.0.1");
  t.after(() => visitor.close());
  await once(visitor, "listening");
  const address = visitor.address() as { port: number };
  for (const [id, secret] of [
    ["app", testSecret],
    ["awkward", awkwardSecret],
  ] as const) {
    const settings = {
      issuer: server.issuer,
      redirect_uri: server.redirectUri,
      id,
      secret,
      visit: `http://127.0.0.1:${address.port}/`,
    };
    const { stdout } = await promisify(execFile)(python, ["-c", pythonClients, JSON.stringify(settings)], {
      timeout: 60_000,
    });
    assert.deepEqual(stdout.trim().split("\n"), [
      "authlib client_secret_basic",
      "authlib client_secret_post",
      "requests-oauthlib",
    ]);
  }
});
