// The web front end's paths and what it passes on, against a catalog of the test's own.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { createAppServer, readBody, sendJson, type Handler } from "../serve.ts";
import { createWebapp } from "./webapp.ts";

async function listen(t: TestContext, handler: Handler): Promise<string> {
  const server: Server = createAppServer(handler).listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const paths = [
  { path: "/api/catalog", catalogPath: "/items", expected: 200 },
  { path: "/api/catalog?color=red", catalogPath: "/items", expected: 200 },
  { path: "/api/catalog/items/7", catalogPath: "/items/7", expected: 200 },
  { path: "/other", catalogPath: undefined, expected: 404 },
  { path: "/", catalogPath: undefined, expected: 404 },
  { path: "/api/catalog/", catalogPath: undefined, expected: 404 },
  { path: "/api/catalog/items", catalogPath: undefined, expected: 404 },
  { path: "/api/catalog/items/7/8", catalogPath: undefined, expected: 404 },
];
for (const { path, catalogPath, expected } of paths) {
  test(`${path} answers ${expected} and asks the catalog for ${catalogPath ?? "nothing"}`, async (t) => {
    const seen: string[] = [];
    const catalogUrl = await listen(t, (request, response) => {
      seen.push(request.url!);
      sendJson(response, 200, { id: 7 });
    });
    const base = await listen(t, createWebapp({ catalogUrl }));
    const answer = await fetch(`${base}${path}`);
    assert.equal(answer.status, expected);
    assert.deepEqual(seen, catalogPath === undefined ? [] : [catalogPath]);
  });
}

test("tracing headers and x-dark-launch reach the catalog, others do not", async (t) => {
  let headers: IncomingMessage["headers"] = {};
  const catalogUrl = await listen(t, (request, response) => {
    headers = request.headers;
    sendJson(response, 200, []);
  });
  const base = await listen(t, createWebapp({ catalogUrl }));
  const passed = { "x-dark-launch": "v2", traceparent: "00-1-2-01", "x-request-id": "r", b3: "1-2-1", baggage: "a=b" };
  await fetch(`${base}/api/catalog`, { headers: { ...passed, cookie: "secret=1", authorization: "Basic eA==" } });
  for (const [name, value] of Object.entries(passed)) assert.equal(headers[name], value);
  assert.equal(headers.cookie, undefined);
  assert.equal(headers.authorization, undefined);
});

test("a change reaches the catalog with its token, and the refusal comes back with its challenge", async (t) => {
  const seen: unknown[] = [];
  const catalogUrl = await listen(t, async (request, response) => {
    const { method, url, headers } = request;
    seen.push([method, url, headers.authorization, await readBody(request, 1000)]);
    response.setHeader("www-authenticate", "Bearer");
    sendJson(response, 401, { error: "no" });
  });
  const base = await listen(t, createWebapp({ catalogUrl }));
  const change = { method: "PUT", body: '{"price": "1.00"}' };
  const headers = { authorization: "Bearer t", cookie: "secret=1" };
  const answer = await fetch(`${base}/api/catalog/items/1`, { ...change, headers });
  assert.deepEqual([answer.status, answer.headers.get("www-authenticate")], [401, "Bearer"]);
  await fetch(`${base}/api/catalog/items/1`, change);
  assert.deepEqual(seen, [
    ["PUT", "/items/1", "Bearer t", change.body],
    ["PUT", "/items/1", undefined, change.body],
  ]);
  assert.equal((await fetch(`${base}/api/catalog`, change)).status, 405);
  assert.equal((await fetch(`${base}/api/catalog/items/1`, { ...change, body: "x".repeat(2000) })).status, 413);
  assert.equal(seen.length, 2);
});

test("the catalog's refusals pass through, its absence is 502, its silence 504", async (t) => {
  const refusing = await listen(t, (request, response) => {
    sendJson(response, request.url === "/items" ? 500 : 404, { error: "no" });
  });
  const base = await listen(t, createWebapp({ catalogUrl: refusing }));
  assert.equal((await fetch(`${base}/api/catalog`)).status, 500);
  const missing = await fetch(`${base}/api/catalog/items/9`);
  assert.equal(missing.status, 404);
  assert.deepEqual(await missing.json(), { error: "no" });

  const gone = await listen(t, (request) => void request.socket.destroy());
  assert.equal((await fetch(`${await listen(t, createWebapp({ catalogUrl: gone }))}/api/catalog`)).status, 502);
  const silent = await listen(t, () => undefined);
  const impatient = await listen(t, createWebapp({ catalogUrl: silent, timeoutMs: 50 }));
  assert.equal((await fetch(`${impatient}/api/catalog`)).status, 504);
});
