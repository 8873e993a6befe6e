// Clients of the authorization server that we did not write, as real programs with their unchanged defaults: nothing but
// the issuer, a client id, its secret and a redirect URI is told to them.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import type { TestContext } from "node:test";
import { Browser } from "../../packages/authorization-server/src/testing/browser.ts";
import type { Visit } from "../../packages/authorization-server/src/testing/browser.ts";
import type { ListeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { listeningServer, overHttp } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { testPassword, testSecret } from "../../packages/authorization-server/src/testing/test-server.ts";
import { mavenJar } from "../tools/maven-project.ts";
import { npmPackages } from "../tools/npm-packages.ts";
import { freePorts, startProcess } from "../tools/processes.ts";

let server: ListeningServer;

before(async () => {
  server = await listeningServer();
  await server.user();
});

after(() => server[Symbol.asyncDispose]());

/** A browser that follows everything, to the application and to the authorization server; it signs in and consents. */
async function signInAt(browser: Browser, page: Visit): Promise<Visit> {
  let visit = page;
  if (visit.body.includes('name="username"')) visit = await browser.signIn(visit, "ann", testPassword);
  if (visit.body.includes('name="decision"')) visit = await browser.decide(visit, "allow");
  return visit;
}

function everywhere(): Browser {
  return new Browser(overHttp, "http://");
}

async function importFrom(folder: string, file: string): Promise<Record<string, unknown>> {
  const module = (await import(pathToFileURL(path.join(folder, "node_modules", file)).href)) as Record<string, unknown>;
  return module;
}

async function springApplication(t: TestContext, properties: Readonly<Record<string, string>>): Promise<string> {
  const jar = await mavenJar(path.join(import.meta.dirname, "spring"), "interop-1.jar");
  const [port] = await freePorts(1);
  const given = { ...properties, "server.port": String(port), "server.address": "127.0.0.1" };
  const settings = Object.entries(given).map(([name, value]) => `--${name}=${value}`);
  const started = await startProcess("java", ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-jar", jar, ...settings]);
  t.after(() => started.stop());
  await started.waitForOutput(/Started Application/, { timeoutMs: 120_000 });
  return `http://127.0.0.1:${port}`;
}

/** An access token that some client of the server got for itself. */
async function accessToken(audience: string): Promise<string> {
  const id = `job-${new URL(audience).host}`;
  await server.client({ id, grants: ["client_credentials"], redirectUris: [], scope: "read", audiences: [audience] });
  const response = await fetch(`${server.issuer}/token`, {
    method: "POST",
    headers: {
      authorization: `Basic ${btoa(`${id}:${testSecret}`)}`,
      "content-type": "application/x-www-form-urlencoded",
    },
    body: "grant_type=client_credentials",
  });
  const { access_token: token } = (await response.json()) as { access_token: string };
  return token;
}

test("Spring Boot, resource server: takes our access tokens, and no forged one", async (t) => {
  const application = await springApplication(t, {
    "spring.security.oauth2.resourceserver.jwt.issuer-uri": server.issuer,
  });
  const token = await accessToken("https://spring.example");
  const ask = (bearer: string): Promise<Response> =>
    fetch(`${application}/me`, { headers: { authorization: `Bearer ${bearer}` } });
  const answer = await ask(token);
  assert.equal(answer.status, 200, answer.headers.get("www-authenticate") ?? "");
  assert.equal(await answer.text(), "job-spring.example");
  assert.equal((await ask(`${token.slice(0, -8)}AAAAAAAA`)).status, 401);
});

test("Spring Boot, resource server that is told the address of the keys alone: takes them too", async (t) => {
  const application = await springApplication(t, {
    "spring.security.oauth2.resourceserver.jwt.jwk-set-uri": `${server.issuer}/jwks`,
  });
  const token = await accessToken("https://keys.example");
  const answer = await fetch(`${application}/me`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 200, answer.headers.get("www-authenticate") ?? "");
});

test("Spring Boot, login: signs in by issuer, id and secret", async (t) => {
  const registration = "spring.security.oauth2.client.registration.tulle";
  const [port] = await freePorts(1);
  const redirectUri = `http://127.0.0.1:${port}/login/oauth2/code/tulle`;
  await server.client({ id: "spring", redirectUris: [redirectUri] });
  const application = await springApplication(t, {
    [`${registration}.client-id`]: "spring",
    [`${registration}.client-secret`]: testSecret,
    [`${registration}.scope`]: "openid,profile,email",
    [`${registration}.redirect-uri`]: "{baseUrl}/login/oauth2/code/{registrationId}",
    "spring.security.oauth2.client.provider.tulle.issuer-uri": server.issuer,
  });
  await updateRedirectUri("spring", `${application}/login/oauth2/code/tulle`);
  const browser = everywhere();
  const me = await signInAt(browser, await browser.open(`${application}/me`));
  assert.equal(me.status, 200, me.body);
  assert.match(me.body, /^usr_/);
});

async function updateRedirectUri(id: string, uri: string): Promise<void> {
  const { database } = server.running.context;
  await database.transaction((transaction) =>
    transaction.run("UPDATE clients SET redirect_uris = ? WHERE id = ?", [JSON.stringify([uri]), id]),
  );
}

interface OpenidClient5 {
  authorizationUrl(parameters: object): string;
  callbackParams(url: string): object;
  callback(redirectUri: string, parameters: object, checks: object): Promise<Tokens5>;
  userinfo(tokens: Tokens5): Promise<Record<string, unknown>>;
  refresh(tokens: Tokens5): Promise<Tokens5>;
  endSessionUrl(parameters: object): string;
}

interface Tokens5 {
  readonly id_token?: string;
  claims(): Record<string, unknown>;
}

interface Issuer5 {
  discover(issuer: string): Promise<{ readonly Client: new (settings: object) => OpenidClient5 }>;
}

test("openid-client 5: discovery, code, userinfo, refresh and logout", async () => {
  const folder = await npmPackages(["openid-client@5.7.0"]);
  const { Issuer } = (await importFrom(folder, "openid-client/lib/index.mjs")) as { Issuer: Issuer5 };
  const bye = server.redirectUri.replace("/cb", "/bye");
  await server.client({ id: "five", postLogoutRedirectUris: [bye] });
  const issuer = await Issuer.discover(server.issuer);
  const client = new issuer.Client({
    client_id: "five",
    client_secret: testSecret,
    redirect_uris: [server.redirectUri],
    post_logout_redirect_uris: [bye],
  });
  const checks = { state: "some state", nonce: "some nonce" };
  const browser = server.browser();
  const url = client.authorizationUrl({ scope: "openid profile email offline_access", ...checks });
  const back = await signInAt(browser, await browser.open(url));
  const tokens = await client.callback(server.redirectUri, client.callbackParams(back.location!), checks);
  assert.equal((await client.userinfo(tokens))["email"], "ann@example.com");
  const refreshed = await client.refresh(tokens);
  assert.equal(refreshed.claims()["sub"], tokens.claims()["sub"]);
  const left = await browser.open(client.endSessionUrl({ id_token_hint: tokens.id_token }));
  assert.equal(left.location?.split("?")[0], bye);
});

test('Auth.js, provider of type "oidc": signs in and knows name and address', async (t) => {
  const folder = await npmPackages(["@auth/core@0.41.3"]);
  const { Auth } = (await importFrom(folder, "@auth/core/index.js")) as {
    Auth: (request: Request, config: object) => Promise<Response>;
  };
  let config: object = {};
  const application = createServer((request, response) => {
    void (async () => {
      const body = request.method === "POST" ? Buffer.concat(await request.toArray()).toString() : null;
      const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)] as [string, string]);
      const asked = new Request(`http://${request.headers.host}${request.url}`, {
        method: request.method!,
        headers,
        body,
      });
      const answer = await Auth(asked, config);
      response.statusCode = answer.status;
      for (const [name, value] of answer.headers) response.appendHeader(name, value);
      response.end(await answer.text());
    })();
  }).listen(0, "127.0.0.1");
  t.after(() => {
    application.closeAllConnections();
    application.close();
  });
  await once(application, "listening");
  const origin = `http://127.0.0.1:${(application.address() as AddressInfo).port}`;
  await server.client({ id: "authjs", redirectUris: [`${origin}/auth/callback/tulle`], claimsInIdToken: true });
  config = {
    secret: "any secret of the application",
    trustHost: true,
    basePath: "/auth",
    providers: [
      {
        id: "tulle",
        name: "Tulle",
        type: "oidc",
        issuer: server.issuer,
        clientId: "authjs",
        clientSecret: testSecret,
      },
    ],
  };
  const browser = everywhere();
  const { csrfToken } = JSON.parse((await browser.open(`${origin}/auth/csrf`)).body) as { csrfToken: string };
  const form = new URLSearchParams({ csrfToken, callbackUrl: `${origin}/auth/session` }).toString();
  const sent = await browser.request("POST", `${origin}/auth/signin/tulle`, form);
  const session = await signInAt(browser, await browser.open(sent.location!));
  const { user } = JSON.parse(session.body) as { user?: Record<string, unknown> };
  assert.equal(user?.["name"], "Ann Example");
  assert.equal(user?.["email"], "ann@example.com");
});
