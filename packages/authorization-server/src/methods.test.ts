// HEAD and OPTIONS at each address, what other methods are told, and requests of which only half comes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createApp } from "./app.ts";
import type { Received } from "./testing/browser.ts";
import { testRedirectUri, testRequest, testServer } from "./testing/test-server.ts";
import type { TestServer } from "./testing/test-server.ts";

function ask(
  server: TestServer,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Received> {
  return server.send({ method, url: new URL(server.issuer).origin + path, headers, body: undefined });
}

test("HEAD is answered as GET without its content, wherever there is a GET", async (t) => {
  const server = await testServer(t);
  await server.client();
  for (const path of [
    "/.well-known/openid-configuration",
    "/.well-known/oauth-authorization-server",
    "/jwks",
    "/userinfo",
    "/",
    "/account",
    "/sign-in",
    "/errors/abc",
    "/authorize",
    `/authorize?${new URLSearchParams(testRequest).toString()}`,
    `/authorize?${new URLSearchParams({ ...testRequest, prompt: "none" }).toString()}`,
    "/logout",
    "/interaction/abc",
    "/healthz",
    "/readyz",
    "/metrics",
  ]) {
    const [got, asked] = [await ask(server, "GET", path), await ask(server, "HEAD", path)];
    assert.equal(asked.status, got.status, path);
    assert.equal(asked.headers["content-type"], got.headers["content-type"], path);
    assert.equal(asked.body, "", path);
    assert.equal(asked.headers["set-cookie"], undefined, path);
  }
  const metadata = "/.well-known/openid-configuration";
  const { headers } = await ask(server, "HEAD", metadata);
  assert.equal(headers["content-length"], (await ask(server, "GET", metadata)).headers["content-length"]);
});

test("HEAD gives no code and signs nobody out, whatever cookies come with it", async (t) => {
  const server = await testServer(t);
  await server.client({ postLogoutRedirectUris: [testRedirectUri] });
  await server.user();
  const browser = server.browser();
  assert.ok((await server.authorize(browser, testRequest)).has("code"));
  const asked = await browser.request("HEAD", server.authorizeUrl(testRequest));
  assert.equal(asked.status, 303);
  assert.match(asked.location ?? "", /\/sign-in\?/);
  await browser.request("HEAD", `${server.issuer}/logout`);
  assert.ok((await server.authorize(browser, { ...testRequest, prompt: "none" })).has("code"), "still signed in");
});

test("OPTIONS says what an address serves, and other methods are told by 405", async (t) => {
  const server = await testServer(t);
  const origin = "https://spa.example";
  await server.client({ id: "spa", isPublic: true, origins: [origin] });
  for (const { path, allow, open } of [
    { path: "/.well-known/openid-configuration", allow: "GET, HEAD, OPTIONS", open: "*" },
    { path: "/jwks", allow: "GET, HEAD, OPTIONS", open: "*" },
    { path: "/authorize", allow: "GET, HEAD, OPTIONS, POST", open: undefined },
    { path: "/token", allow: "OPTIONS, POST", open: origin },
    { path: "/revoke", allow: "OPTIONS, POST", open: origin },
    { path: "/introspect", allow: "OPTIONS, POST", open: undefined },
    { path: "/userinfo", allow: "GET, HEAD, OPTIONS, POST", open: origin },
    { path: "/sign-in", allow: "GET, HEAD, OPTIONS, POST", open: undefined },
    { path: "/account/grants/x/revoke", allow: "OPTIONS, POST", open: undefined },
  ]) {
    const asked = await ask(server, "OPTIONS", path, {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization",
    });
    assert.equal(asked.status, 204, path);
    assert.equal(asked.headers["allow"], allow, path);
    assert.equal(asked.headers["access-control-allow-origin"], open, path);
    // The token endpoint refuses in its own form.
    if (path === "/token") continue;
    const wrong = await ask(server, "DELETE", path);
    assert.equal(wrong.status, 405, path);
    assert.equal(wrong.headers["allow"], allow, path);
  }
  assert.equal((await ask(server, "HEAD", "/token")).headers["allow"], "OPTIONS, POST");
  assert.equal((await ask(server, "OPTIONS", "/nothing")).status, 404);
});

test("an https issuer says on every answer that its host is for https alone", async (t) => {
  const server = await testServer(t, { flags: ["--issuer", "https://auth.example/a"] });
  for (const path of ["/a/jwks", "/a/authorize", "/a/account", "/nothing", "/healthz"])
    assert.equal((await ask(server, "GET", path)).headers["strict-transport-security"], "max-age=31536000", path);
});

test("half a head and half a body end at the limit, which is 15 s for both", async (t) => {
  const server = await testServer(t);
  const { requestTimeout, headersTimeout } = server.app.server;
  assert.deepEqual({ requestTimeout, headersTimeout }, { requestTimeout: 15_000, headersTimeout: 15_000 });
  const app = createApp(server.context, { requestTimeoutMs: 1500, requestCheckMs: 10 });
  await app.listen({ port: 0, host: "127.0.0.1" });
  t.after(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  const form = "POST /token HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-www-form-urlencoded\r\n";
  const halves = ["GET /jwks HTTP/1.1\r\nhost: a\r\nx-h", `${form}content-length: 9\r\n\r\ngrant`];
  const answers = halves.map(async (sent) => {
    const socket = connect(port, "127.0.0.1");
    socket.write(sent);
    let answer = "";
    socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
    await once(socket, "close");
    assert.match(answer, /^HTTP\/1\.1 408 /, sent);
  });
  await Promise.all(answers);
});
