// Authlib in a Flask application against the authorization server, with its unchanged defaults. Its session for scripts
// runs in the quick suite (client-libraries.test.ts).
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import type { ListeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { listeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { testSecret } from "../../packages/authorization-server/src/testing/test-server.ts";
import { freePort, startProcess } from "../tools/processes.ts";
import { oauthClientPackages, pythonEnvironment } from "../tools/python-environment.ts";
import { everywhere, signInAt } from "./owner.ts";

let server: ListeningServer;
let python: string;

before(async () => {
  python = await pythonEnvironment(oauthClientPackages);
  server = await listeningServer();
  await server.user();
});

after(() => server?.[Symbol.asyncDispose]());

test("Authlib in Flask: discovery, code, ID token and userinfo", async () => {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  await server.client({ id: "flask", redirectUris: [`${origin}/auth`] });
  const env = { ISSUER: server.issuer, CLIENT_ID: "flask", CLIENT_SECRET: testSecret, PORT: String(port) };
  await using application = await startProcess(python, [path.join(import.meta.dirname, "python", "app.py")], { env });
  await application.waitForOutput(/Running on/);
  const browser = everywhere();
  const page = await signInAt(browser, await browser.open(`${origin}/login`));
  assert.equal(page.status, 200, `${page.body}\n${application.output()}`);
  const { claims, email } = JSON.parse(page.body) as { claims: Readonly<Record<string, unknown>>; email: string };
  assert.match(String(claims["sub"]), /^usr_/);
  assert.equal(claims["iss"], server.issuer);
  assert.equal(email, "ann@example.com");
});
