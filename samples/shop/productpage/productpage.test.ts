// The product page: what it shows, its login, its files, and that nothing from outside becomes markup.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { createCatalog } from "../catalog/catalog.ts";
import { Stock } from "../catalog/stock.ts";
import { createAppServer, sendJson, type Handler } from "../serve.ts";
import { createProductpage } from "./productpage.ts";

async function listen(t: TestContext, handler: Handler): Promise<string> {
  const server = createAppServer(handler).listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function start(t: TestContext, catalog: Handler): Promise<string> {
  const catalogUrl = await listen(t, catalog);
  const staticFolder = path.join(import.meta.dirname, "static");
  return listen(t, await createProductpage({ catalogUrl, staticFolder }));
}

const catalogV2 = (): Handler =>
  createCatalog(new Stock({ showImage: true, imageBaseUrl: "http://localhost:8080/static" }));

test("the page shows the catalog, and every picture on it exists", async (t) => {
  const base = await start(t, catalogV2());
  const html = await (await fetch(`${base}/productpage`)).text();
  assert.match(html, /Lighthouse Glasses/);
  assert.match(html, /€ 282\.00/);
  const links = [...html.matchAll(/(?:src|href)="(\/static\/[^"]+)"/g)].map((match) => match[1]!);
  assert.ok(links.length >= 8);
  for (const link of links) assert.equal((await fetch(base + link)).status, 200, link);
});

test("the bare host leads to the page", async (t) => {
  const base = await start(t, catalogV2());
  const answer = await fetch(`${base}/`, { redirect: "manual" });
  assert.deepEqual([answer.status, answer.headers.get("location")], [303, "/productpage"]);
  assert.deepEqual(answer.headers.getSetCookie(), []);
});

test("products as JSON, one and all", async (t) => {
  const base = await start(t, catalogV2());
  assert.equal(((await (await fetch(`${base}/api/v1/products`)).json()) as unknown[]).length, 6);
  assert.equal(((await (await fetch(`${base}/api/v1/products/2`)).json()) as { id: number }).id, 2);
  assert.equal((await fetch(`${base}/api/v1/products/99`)).status, 404);
});

test("login sets a name that the page greets without trusting it, logout forgets it", async (t) => {
  const base = await start(t, catalogV2());
  assert.match(await (await fetch(`${base}/login`)).text(), /<form/);
  const answer = await fetch(`${base}/login`, {
    method: "POST",
    body: new URLSearchParams({ name: "<b>Ada</b>" }),
    redirect: "manual",
  });
  assert.equal(answer.status, 303);
  assert.equal(answer.headers.get("location"), "/productpage");
  const cookie = answer.headers.get("set-cookie")!.split(";")[0]!;
  const html = await (await fetch(`${base}/productpage`, { headers: { cookie } })).text();
  assert.match(html, /Hello, &#60;b&#62;Ada&#60;\/b&#62;/);
  const logout = await fetch(`${base}/logout`, { redirect: "manual" });
  assert.match(logout.headers.get("set-cookie")!, /^user=; Max-Age=0/);
  assert.equal((await fetch(`${base}/login`, { method: "POST", body: new URLSearchParams() })).status, 400);
});

test("a catalog that fails leaves a page that says so", async (t) => {
  const base = await start(t, (_request, response) => sendJson(response, 500, { error: "blowup" }));
  const page = await fetch(`${base}/productpage`);
  assert.equal(page.status, 200);
  assert.match(await page.text(), /It answered 500/);
  assert.equal((await fetch(`${base}/api/v1/products`)).status, 502);
});

for (const target of ["/static/", "/static/../main.ts", "/static/%2e%2e/main.ts", "/productpage/more"]) {
  test(`${target} answers 404`, async (t) => {
    const base = await start(t, catalogV2());
    assert.equal((await fetch(base + target)).status, 404);
  });
}
