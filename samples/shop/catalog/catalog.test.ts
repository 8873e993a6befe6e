// The catalog's answers and its fault switch, over real HTTP and without a mesh.
import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { createAppServer } from "../serve.ts";
import { createCatalog } from "./catalog.ts";
import { Stock, type StockOptions } from "./stock.ts";

async function start(t: TestContext, options: Partial<StockOptions> = {}): Promise<string> {
  const handler = createCatalog(new Stock({ showImage: false, imageBaseUrl: "http://pictures", ...options }));
  const server = createAppServer(handler).listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function blowup(base: string, body: unknown): Promise<Response> {
  return fetch(`${base}/blowup`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

test("an item has exactly its documented fields", async (t) => {
  const base = await start(t);
  const item = (await (await fetch(`${base}/items/1`)).json()) as Record<string, unknown>;
  assert.deepEqual(Object.keys(item), ["id", "color", "department", "name", "price"]);
  assert.equal(item["id"], 1);
  assert.match(String(item["price"]), /^\d+\.\d\d$/);
});

test("only v2 shows pictures", async (t) => {
  const base = await start(t, { showImage: true });
  const items = (await (await fetch(`${base}/items`)).json()) as { imageUrl: string }[];
  assert.equal(items[0]!.imageUrl, "http://pictures/item-1.svg");
  assert.ok(items.every((item) => URL.canParse(item.imageUrl)));
});

test("a price changes for those who ask afterwards", async (t) => {
  const base = await start(t, { showImage: true });
  const changed = await fetch(`${base}/items/2`, { method: "PUT", body: '{"price": "99.00"}' });
  assert.equal(changed.status, 200);
  const item = (await changed.json()) as { price: string; name: string };
  assert.deepEqual([item.price, item.name], ["99.00", "Harbour Jumper"]);
  assert.deepEqual(await (await fetch(`${base}/items/2`)).json(), item);
  assert.equal(((await (await fetch(`${base}/items`)).json()) as { price: string }[])[1]!.price, "99.00");
});

for (const body of ["", "99", "{", '{"price": 99}', '{"price": "99"}', '{"price": "-1.00"}', '{"other": "99.00"}']) {
  test(`the price ${body} answers 400 and changes nothing`, async (t) => {
    const base = await start(t);
    const before = await (await fetch(`${base}/items/2`)).text();
    assert.equal((await fetch(`${base}/items/2`, { method: "PUT", body })).status, 400);
    assert.equal(await (await fetch(`${base}/items/2`)).text(), before);
  });
}

const refusals = [
  { name: "unknown id", method: "GET", path: "/items/999", expected: 404 },
  { name: "no number", method: "GET", path: "/items/one", expected: 404 },
  { name: "a deeper path", method: "GET", path: "/items/1/2", expected: 404 },
  { name: "unknown path", method: "GET", path: "/", expected: 404 },
  { name: "wrong method on items", method: "POST", path: "/items", expected: 405 },
  { name: "wrong method on an item", method: "DELETE", path: "/items/1", expected: 405 },
  { name: "a change of what is not there", method: "PUT", path: "/items/999", expected: 404 },
  { name: "wrong method on blowup", method: "GET", path: "/blowup", expected: 405 },
];
for (const { name, method, path, expected } of refusals) {
  test(`${name} answers ${expected} as JSON`, async (t) => {
    const base = await start(t);
    const answer = await fetch(`${base}${path}`, { method });
    assert.equal(answer.status, expected);
    assert.equal(answer.headers.get("content-type"), "application/json");
    assert.equal(typeof ((await answer.json()) as { error: string }).error, "string");
  });
}

test("the fault switch fails the chosen share of requests, and stops", async (t) => {
  let next = 0;
  const base = await start(t, { random: () => (next = (next + 0.01) % 1) });
  const failures = async (): Promise<number> => {
    let count = 0;
    for (let index = 0; index < 100; index += 1) {
      const answer = await fetch(`${base}/items/1`);
      await answer.arrayBuffer();
      if (answer.status === 500) count += 1;
    }
    return count;
  };
  const on = await blowup(base, { active: true, type: "500", percentage: 30 });
  assert.equal(on.status, 200);
  assert.match(on.headers.get("content-type") ?? "", /^text\/plain/);
  const partly = await failures();
  assert.ok(partly >= 29 && partly <= 31, `${partly} of 100 failed`);
  await blowup(base, { active: true, type: "500" });
  assert.equal(await failures(), 100);
  await blowup(base, { active: false });
  assert.equal(await failures(), 0);
});

const badRules = [
  { name: "not JSON", body: "{" },
  { name: "not an object", body: [] },
  { name: "null", body: "null" },
  { name: "active missing", body: { type: "500", percentage: 10 } },
  { name: "active as text", body: { active: "true", type: "500" } },
  { name: "another type", body: { active: true, type: "503" } },
  { name: "type missing", body: { active: true } },
  { name: "percentage over 100", body: { active: true, type: "500", percentage: 101 } },
  { name: "percentage below 0", body: { active: true, type: "500", percentage: -1 } },
  { name: "a broken percentage", body: { active: true, type: "500", percentage: 1.5 } },
  { name: "a body that is too long", body: `{"active": true${" ".repeat(2000)}}` },
];
for (const { name, body } of badRules) {
  test(`a fault rule with ${name} answers 400 in plain text and changes nothing`, async (t) => {
    const base = await start(t);
    const answer = await blowup(base, body);
    assert.equal(answer.status, 400);
    assert.match(answer.headers.get("content-type") ?? "", /^text\/plain/);
    assert.notEqual(await answer.text(), "");
    assert.equal((await fetch(`${base}/items`)).status, 200);
  });
}
