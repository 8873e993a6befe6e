// openid-client 5 and Auth.js against the authorization server, with their unchanged defaults. openid-client 6 and
// other libraries for Node run in the quick suite (client-libraries.test.ts).
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import type { ListeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { listeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { testSecret } from "../../packages/authorization-server/src/testing/test-server.ts";
import { npmPackages } from "../tools/npm-packages.ts";
import { everywhere, signInAt } from "./owner.ts";

let server: ListeningServer;
let modules: string;

before(async () => {
  modules = await npmPackages(path.join(import.meta.dirname, "javascript"));
  server = await listeningServer();
  await server.user();
});

after(() => server?.[Symbol.asyncDispose]());

async function importFrom(file: string): Promise<Record<string, unknown>> {
  return (await import(pathToFileURL(path.join(modules, file)).href)) as Record<string, unknown>;
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
  const { Issuer } = (await importFrom("openid-client/lib/index.mjs")) as { Issuer: Issuer5 };
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
  const { Auth } = (await importFrom("@auth/core/index.js")) as {
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
