// Go's x/oauth2 and go-oidc against the authorization server, with their unchanged defaults.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import type { ListeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { listeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { testSecret } from "../../packages/authorization-server/src/testing/test-server.ts";
import { goProgram } from "../tools/go-program.ts";
import { freePort, startProcess } from "../tools/processes.ts";
import { everywhere, signInAt } from "./owner.ts";

let server: ListeningServer;
let program: string;

before(async () => {
  program = await goProgram(path.join(import.meta.dirname, "go"));
  server = await listeningServer();
  await server.user();
});

after(() => server?.[Symbol.asyncDispose]());

test("x/oauth2 with go-oidc: discovery, code, ID token, userinfo and refresh", async () => {
  const address = `127.0.0.1:${await freePort()}`;
  await server.client({ id: "go", redirectUris: [`http://${address}/callback`] });
  const env = { ISSUER: server.issuer, CLIENT_ID: "go", CLIENT_SECRET: testSecret, ADDRESS: address };
  await using application = await startProcess(program, [], { env });
  await application.waitForOutput(/listening/);
  const browser = everywhere();
  const page = await signInAt(browser, await browser.open(`http://${address}/`));
  assert.equal(page.status, 200, page.body);
  const shown = JSON.parse(page.body) as Readonly<Record<string, unknown>>;
  assert.match(String(shown["Subject"]), /^usr_/);
  assert.deepEqual(shown, {
    Subject: shown["Subject"],
    Userinfo: shown["Subject"],
    Email: "ann@example.com",
    Refreshed: true,
  });
});
