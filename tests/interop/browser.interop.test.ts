// oidc-client-ts in Chromium against the authorization server, with its unchanged defaults: a browser application
// without a server of its own.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import type { Browser } from "playwright-core";
import type { ListeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { listeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { testPassword } from "../../packages/authorization-server/src/testing/test-server.ts";
import { chromiumArguments, chromiumPath } from "../tools/chromium-path.ts";
import { npmPackages } from "../tools/npm-packages.ts";

let browser: Browser | undefined;
let server: ListeningServer | undefined;
let application: Server | undefined;
let origin = "";

after(async () => {
  await browser?.close();
  application?.closeAllConnections();
  application?.close();
  await server?.[Symbol.asyncDispose]();
});

before(async () => {
  const modules = await npmPackages(path.join(import.meta.dirname, "javascript"));
  const library = await readFile(path.join(modules, "oidc-client-ts/dist/browser/oidc-client-ts.min.js"));
  browser = await chromium.launch({ executablePath: await chromiumPath(), args: [...chromiumArguments] });
  // An access token begins to be renewed a minute before its end, unless the application says otherwise: here after two
  // seconds.
  server = await listeningServer(["--access-token-lifetime", "62s"]);
  await server.user();
  const { issuer } = server;
  application = createServer((request, response) => {
    const isLibrary = request.url === "/oidc-client-ts.js";
    response.setHeader("content-type", isLibrary ? "text/javascript" : "text/html");
    response.end(isLibrary ? library : page(issuer));
  }).listen(0, "127.0.0.1");
  await once(application, "listening");
  origin = `http://127.0.0.1:${(application.address() as AddressInfo).port}`;
  await server.client({
    id: "page",
    name: "A page",
    isPublic: true,
    redirectUris: [`${origin}/callback`],
    postLogoutRedirectUris: [`${origin}/bye`],
    origins: [origin],
  });
});

/** The page of all addresses of the application. */
function page(issuer: string): string {
  return `<!doctype html><title>Application</title><h1></h1>
<script src="/oidc-client-ts.js"></script>
<script>
  const settings = {
    authority: "${issuer}",
    client_id: "page",
    redirect_uri: location.origin + "/callback",
    post_logout_redirect_uri: location.origin + "/bye",
    scope: "openid profile email offline_access",
  };
  const manager = new oidc.UserManager(settings);
  const accessTokens = [];
  manager.events.addUserLoaded((user) => accessTokens.push(user.access_token));
  const show = (text) => (document.querySelector("h1").textContent = text);
  const fail = (error) => show("Failed: " + error);
  if (location.pathname === "/callback") manager.signinCallback().then((user) => show("Hello " + user.profile.sub), fail);
  else if (location.pathname === "/bye") manager.signoutCallback().then(() => show("Good bye"), fail);
  else manager.getUser().then((user) => show(user === null ? "Nobody" : "Hello " + user.profile.sub), fail);
</script>`;
}

test("oidc-client-ts in Chromium: sign-in, renewal by refresh token, by itself and asked for, userinfo, revocation and sign-out", async () => {
  const tab = await browser!.newPage();
  const heading = async (text: RegExp): Promise<void> => {
    const shown = tab.getByRole("heading", { name: /Hello|Good bye|Nobody|Failed/ });
    await shown.waitFor();
    assert.match((await shown.textContent()) ?? "", text);
  };
  await tab.goto(origin);
  await heading(/^Nobody$/);
  await tab.evaluate("void manager.signinRedirect()");
  await tab.getByLabel("User name").fill("ann");
  await tab.getByLabel("Password").fill(testPassword);
  await tab.getByRole("button", { name: "Sign in" }).click();
  await tab.getByRole("button", { name: "Allow" }).click();
  await heading(/^Hello usr_/);

  await tab.waitForFunction("accessTokens.length >= 2 && new Set(accessTokens).size === accessTokens.length");
  const own = await tab.evaluate<string>("manager.getUser().then((user) => user.access_token)");
  const asked = await tab.evaluate<string>("manager.signinSilent().then((user) => user.access_token)");
  assert.notEqual(asked, own);
  await tab.goto(origin);
  await heading(/^Hello usr_/);

  const email = await tab.evaluate<string>(
    "new oidc.UserManager({ ...settings, loadUserInfo: true }).signinSilent().then((user) => user.profile.email)",
  );
  assert.equal(email, "ann@example.com");
  await tab.evaluate("manager.revokeTokens()");
  await tab.evaluate("void manager.signoutRedirect()");
  await heading(/^Good bye$/);
  await tab.goto(origin);
  await heading(/^Nobody$/);
  await tab.evaluate("void manager.signinRedirect()");
  await tab.getByLabel("User name").waitFor();
});

test("oidc-client-ts in Chromium: sign-in and sign-out in a window of its own", async () => {
  const context = await browser!.newContext();
  const tab = await context.newPage();
  await tab.goto(origin);
  const opened = tab.waitForEvent("popup");
  const signedIn = tab.evaluate<string>("manager.signinPopup().then((user) => user.profile.sub)");
  const shown = await opened;
  await shown.getByLabel("User name").fill("ann");
  await shown.getByLabel("Password").fill(testPassword);
  await shown.getByRole("button", { name: "Sign in" }).click();
  await shown.getByRole("button", { name: "Allow" }).click();
  assert.match(await signedIn, /^usr_/);
  await tab.evaluate("manager.signoutPopup()");
  assert.equal(await tab.evaluate("manager.getUser()"), null);
  await tab.goto(`${server!.issuer}/account`);
  await tab.getByLabel("User name").waitFor();
  await context.close();
});
