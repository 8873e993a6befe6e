// The account page of the shop: the gateway asks people to sign in, passes the access token on alone, keeps the session
// going and ends it. A real browser, the authorization server behind the same gateway, every part an ordinary workload.
import assert from "node:assert/strict";
import path from "node:path";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { waitFor } from "../tools/processes.ts";
import type { UseShop } from "./running-shop.ts";
import { ShopBrowser } from "./shop-browser.ts";
import { type Answer, httpRequest, type ShopInstance } from "./shop-instance.ts";

/** The tests of a suite; `use` gives them a whole shop. */
export function accountPageTests(use: UseShop): void {
  let shop: ShopInstance;
  let base: string;
  let secureBase: string;
  let browser: ShopBrowser;

  use(async (running) => {
    shop = running;
    base = `http://localhost:${shop.port}`;
    secureBase = `https://localhost:${shop.securePort}`;
    browser = await ShopBrowser.open(shop);
    // Ready says nothing of the provider: until its keys and addresses are known, /account answers 503.
    await waitFor(async () => (await ask("/account")).status === 302, { what: "the way to the sign-in page" });
  });

  after(() => browser?.[Symbol.asyncDispose]());

  /** `fetch` would add Sec-Fetch-Mode of its own. */
  const ask = (target: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
    httpRequest(`${base}${target}`, { headers });

  /** Each time, since the gateway is a public client: nothing proves that it is the one that was allowed before. */
  async function allow(page: Page): Promise<void> {
    await page.getByRole("heading", { name: "Allow Demo gateway?" }).waitFor();
    await page.getByRole("button", { name: "Allow" }).click();
  }

  test("sign-in, the orders, refresh, sign-out", async () => {
    const page = await browser.newPage();
    await page.goto(`${base}/account?from=here`);
    await browser.signIn(page);
    await allow(page);
    await page.getByText("Signed in as Demo User").waitFor();
    assert.equal(page.url(), `${base}/account?from=here`, "back where it was");
    assert.equal(await page.getByRole("row").count(), 4, "a heading and three orders");

    const cookies = (await page.context().cookies()).filter(({ name }) => !name.startsWith("tulle_"));
    assert.deepEqual(
      cookies.map(({ name }) => name.replace(/^__Host-|-[0-9a-f]+$/g, "")).sort((a, b) => (a < b ? -1 : 1)),
      ["AccessToken", "IdToken", "OauthExpires", "OauthHMAC", "RefreshToken"],
    );
    for (const cookie of cookies) {
      assert.deepEqual([cookie.secure, cookie.httpOnly, cookie.sameSite], [true, true, "Lax"], cookie.name);
      assert.doesNotMatch(cookie.value, /^eyJ[\w-]+\./, "no token in the clear");
    }

    // What the browser loses at the end of an access token's life.
    const ended = /^__Host-(AccessToken|OauthExpires|OauthHMAC)-/;
    for (const { name } of cookies) if (ended.test(name)) await page.context().clearCookies({ name });
    await page.reload();
    await page.getByText("Signed in as Demo User").waitFor();
    const refreshed = await page.context().cookies();
    assert.equal(refreshed.filter(({ name }) => ended.test(name)).length, 3);

    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(`${base}/productpage`);
    assert.deepEqual(
      (await page.context().cookies()).filter(({ name }) => name.startsWith("__Host-")),
      [],
    );
    await page.goto(`${base}/account`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.context().close();
  });

  test("a page on the secure port signs in at the one issuer and comes back", async () => {
    const page = await browser.newPage();
    await page.goto(`${secureBase}/account`);
    assert.ok(page.url().startsWith(`${base}/oauth2/`), page.url());
    await browser.signIn(page);
    await allow(page);
    await page.getByText("Signed in as Demo User").waitFor();
    assert.equal(page.url(), `${secureBase}/account`);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(`${secureBase}/productpage`);
    await page.context().close();
  });

  test("scripts, forged tokens and forged callbacks", async () => {
    assert.equal((await ask("/account", { "sec-fetch-mode": "cors" })).status, 401);
    const forged = await ask("/account", { authorization: "Bearer e30.e30.e30" });
    assert.equal(forged.status, 302, "a token of the client's own counts for nothing");
    assert.match(String(forged.headers["location"]), /\/oauth2\/authorize\?/);
    const callback = await ask("/signed-in?code=a&state=b");
    assert.equal(callback.status, 401);
    assert.equal(callback.body, "OAuth flow failed.");
    // Other pages ask nobody to sign in, and the API takes tokens as before.
    assert.equal((await ask("/productpage")).status, 200);
    assert.equal((await ask("/api/orders")).status, 401);
  });

  test("under all of the shop's policies people sign in as before", async () => {
    await shop.mustTulle("apply", "-f", path.join(shop.folder, "policies"));
    const policy = '"name": "account-needs-sign-in"';
    await waitFor(async () => (await shop.mustTulle("authz", "check", "orders", "-o", "json")).includes(policy), {
      what: "the policy at the orders service",
    });
    const page = await browser.newPage();
    await page.goto(`${base}/account`);
    await browser.signIn(page);
    await allow(page);
    await page.getByText("Signed in as Demo User").waitFor();
    await page.context().close();
  });
}
