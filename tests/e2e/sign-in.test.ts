// A person signs in through the gateway: the client application of the shop walks the code grant in a real browser,
// shows the orders, refreshes its token and signs out. Every part is an ordinary workload behind its sidecar.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { useRunningShop } from "./running-shop.ts";
import { ShopBrowser } from "./shop-browser.ts";

describe("signing in to the shop", () => {
  let base: string;
  let browser: ShopBrowser;

  useRunningShop("whole, Tulle's proxy", async (shop) => {
    base = `http://localhost:${shop.port}`;
    browser = await ShopBrowser.open(shop);
  });
  after(() => browser?.[Symbol.asyncDispose]());

  test("login, consent, orders, refresh, logout", async () => {
    const page = await browser.newPage();
    await page.goto(`${base}/client`);
    await page.getByRole("link", { name: "Sign in" }).click();
    await browser.signIn(page);
    await page.getByRole("heading", { name: "Allow Demo application?" }).waitFor();
    assert.match((await page.textContent("main")) ?? "", /See your orders/);
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByText("Signed in as Demo User").waitFor();
    assert.equal(await page.getByRole("row").count(), 4, "a heading and three orders");
    assert.equal(await page.getByRole("cell", { name: "€ 282.00" }).count(), 1);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText("refreshed 1 times").waitFor();
    assert.equal(await page.getByRole("row").count(), 4);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("link", { name: "Sign in" }).waitFor();
    assert.equal(page.url(), `${base}/client`);
    await page.getByRole("link", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.context().close();
  });

  test("a refusal comes back to the application in words", async () => {
    const page = await browser.newPage();
    await page.goto(`${base}/client/login`);
    await browser.signIn(page);
    // Consent is remembered from the test before; the owner takes it back on the account page, and is asked anew.
    await page.getByText("Signed in as Demo User").waitFor();
    await page.goto(`${base}/oauth2/account`);
    await page.getByRole("button", { name: "Take back the access of Demo application" }).click();
    await page.getByRole("status").waitFor();
    await page.goto(`${base}/client/login`);
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByText("You did not allow this application").waitFor();
    await page.context().close();
  });

  const unauthorized = [
    { name: "no token, says the service", headers: {}, challenge: /^Bearer realm="orders"/ },
    {
      name: "a token of nobody, says the proxy beside it",
      headers: { authorization: "Bearer e30.e30.e30" },
      challenge: /^Bearer realm="http:.*\/api\/orders", error="invalid_token"$/,
    },
  ];
  for (const { name, headers, challenge } of unauthorized) {
    test(`the orders are not for ${name}`, async () => {
      const answer = await fetch(`${base}/api/orders`, { headers: headers as Record<string, string> });
      assert.equal(answer.status, 401);
      assert.match(answer.headers.get("www-authenticate") ?? "", challenge);
    });
  }

  test("discovery answers at both addresses of an issuer with a path", async () => {
    for (const target of [
      "/oauth2/.well-known/openid-configuration",
      "/.well-known/oauth-authorization-server/oauth2",
    ]) {
      const answer = await waitFor(async () => fetch(base + target), { what: target });
      assert.equal(answer.status, 200);
      assert.equal(((await answer.json()) as { issuer: string }).issuer, `${base}/oauth2`);
    }
  });

  test("what the gateway does not route stays inside", async () => {
    for (const target of ["/metrics", "/readyz"]) assert.equal((await fetch(base + target)).status, 404);
  });
});
