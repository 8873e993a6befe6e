// ASP.NET Core's OpenIdConnect handler against the authorization server, replayed request by request in an application
// with https, as .NET's development certificate gives it; Chromium carries the form to it across sites.
import assert from "node:assert/strict";
import { createServer } from "node:https";
import type { Server } from "node:https";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import type { Browser, Page } from "playwright-core";
import type { ListeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { listeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { testPassword, testSecret } from "../../packages/authorization-server/src/testing/test-server.ts";
import { testCertificate } from "../tools/certificates.ts";
import { chromiumArguments, chromiumPath } from "../tools/chromium-path.ts";
import { AspNetCoreHandler } from "./aspnet-core-handler.ts";
import type { HandlerAnswer } from "./aspnet-core-handler.ts";

let browser: Browser | undefined;
let server: ListeningServer | undefined;
let application: Server | undefined;
let origin: string;

after(async () => {
  await browser?.close();
  application?.closeAllConnections();
  application?.close();
  await server?.[Symbol.asyncDispose]();
});

before(async () => {
  browser = await chromium.launch({ executablePath: await chromiumPath(), args: [...chromiumArguments] });
  server = await listeningServer();
  await server.user();
  const { certificate, key } = await testCertificate({ commonName: "localhost", names: ["DNS:localhost"] });
  let handler: AspNetCoreHandler;
  application = createServer({ cert: certificate, key }, (request, response) => {
    void (async () => {
      const body = Buffer.concat(await request.toArray()).toString();
      const cookies = new Set((request.headers.cookie ?? "").split("; ").map((pair) => pair.split("=", 1)[0]!));
      const url = new URL(request.url!, origin);
      const answer = await route(handler, url, { type: request.headers["content-type"], body, cookies }).catch(
        (error: unknown): HandlerAnswer => ({ status: 500, body: String(error) }),
      );
      response.statusCode = answer.status;
      response.setHeader("content-type", "text/html");
      if (answer.location !== undefined) response.setHeader("location", answer.location);
      if (answer.cookies !== undefined) response.setHeader("set-cookie", [...answer.cookies]);
      response.end(`<!doctype html><h1>${answer.body ?? ""}</h1>`);
    })();
  }).listen(0, "127.0.0.1");
  await once(application, "listening");
  origin = `https://localhost:${(application.address() as AddressInfo).port}`;
  const options = { authority: server.issuer, clientId: "aspnet", clientSecret: testSecret, origin };
  handler = new AspNetCoreHandler(options);
  await server.client({
    id: "aspnet",
    redirectUris: [`${origin}/signin-oidc`],
    postLogoutRedirectUris: [`${origin}/signout-callback-oidc`],
  });
});

interface Posted {
  readonly type: string | undefined;
  readonly body: string;
  readonly cookies: ReadonlySet<string>;
}

async function route(handler: AspNetCoreHandler, url: URL, { type, body, cookies }: Posted): Promise<HandlerAnswer> {
  if (url.pathname === "/signin-oidc") return handler.signIn(type, body, cookies);
  if (url.pathname === "/signout-callback-oidc") return handler.signedOut(url.searchParams);
  if (url.pathname === "/signed-out") return { status: 200, body: "Good bye" };
  if (url.pathname === "/favicon.ico") return { status: 404 };
  if (handler.user === undefined) return handler.challenge(url.pathname);
  if (url.pathname === "/sign-out") return handler.signOut();
  return { status: 200, body: `Hello ${String(handler.user["name"])}` };
}

async function heading(tab: Page, text: RegExp): Promise<void> {
  const shown = tab.getByRole("heading", { name: /Hello|Good bye|Exception|Error/ });
  await shown.waitFor();
  assert.match((await shown.textContent()) ?? "", text);
}

async function signIn(tab: Page): Promise<void> {
  await tab.goto(origin);
  await tab.getByLabel("User name").fill("ann");
  await tab.getByLabel("Password").fill(testPassword);
  await tab.getByRole("button", { name: "Sign in" }).click();
}

test("ASP.NET Core's handler: sign-in by a posted form, userinfo and sign-out", async () => {
  const context = await browser!.newContext({ ignoreHTTPSErrors: true });
  const tab = await context.newPage();
  await signIn(tab);
  await tab.getByRole("button", { name: "Deny" }).click();
  await heading(tab, /Exception: Message contains error: 'access_denied'/);

  await tab.goto(origin);
  await tab.getByRole("button", { name: "Allow" }).click();
  await heading(tab, /^Hello Ann Example$/);
  await tab.goto(`${origin}/sign-out`);
  await heading(tab, /^Good bye$/);
  await tab.goto(origin);
  await tab.getByLabel("User name").waitFor();
  await context.close();
});
