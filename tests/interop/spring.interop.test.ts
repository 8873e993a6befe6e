// Spring Boot against the authorization server, as a real program with its unchanged defaults: nothing but the issuer,
// a client id, its secret and a redirect URI is told to it.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import type { TestContext } from "node:test";
import type { ListeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { listeningServer } from "../../packages/authorization-server/src/testing/listening-server.ts";
import { testSecret } from "../../packages/authorization-server/src/testing/test-server.ts";
import { mavenJar } from "../tools/maven-project.ts";
import { freePorts, startProcess, waitFor } from "../tools/processes.ts";
import { everywhere, signInAt } from "./owner.ts";

let server: ListeningServer;
let jar: string;

before(async () => {
  jar = await mavenJar(path.join(import.meta.dirname, "spring"), "interop-1.jar");
  server = await listeningServer();
  await server.user();
});

after(() => server?.[Symbol.asyncDispose]());

async function springApplication(t: TestContext, properties: Readonly<Record<string, string>>): Promise<string> {
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

/** An application that signs people in; its registration follows the port that it got. */
async function loginApplication(t: TestContext, id: string, more: Readonly<Record<string, string>> = {}) {
  const registration = "spring.security.oauth2.client.registration.tulle";
  await server.client({ id });
  const application = await springApplication(t, {
    [`${registration}.client-id`]: id,
    [`${registration}.client-secret`]: testSecret,
    [`${registration}.scope`]: "openid,profile,email",
    "spring.security.oauth2.client.provider.tulle.issuer-uri": server.issuer,
    ...more,
  });
  await server.updateClient(id, {
    redirectUris: [`${application}/login/oauth2/code/tulle`],
    backchannelLogoutUri: `${application}/logout/connect/back-channel/tulle`,
  });
  return application;
}

test("Spring Boot, login: signs in by issuer, id and secret", async (t) => {
  const application = await loginApplication(t, "spring");
  const browser = everywhere();
  const me = await signInAt(browser, await browser.open(`${application}/me`));
  assert.equal(me.status, 200, me.body);
  assert.match(me.body, /^usr_/);
});

test("Spring Boot, back-channel logout: whose session ends here is signed out there", async (t) => {
  const application = await loginApplication(t, "spring-logout", { "interop.back-channel-logout": "true" });
  const browser = everywhere();
  const me = await signInAt(browser, await browser.open(`${application}/me`));
  assert.equal(me.status, 200, me.body);
  assert.match((await browser.open(`${application}/me`)).body, /^usr_/, "signed in without being asked");
  await server.endSessions("ann");
  const isSignedOut = async (): Promise<boolean> =>
    (await browser.open(`${application}/me`)).body.includes('name="username"');
  await waitFor(isSignedOut, { what: "the application to ask for a sign-in again" });
});
