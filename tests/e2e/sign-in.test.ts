// A person signs in through the gateway: the client application of the shop walks the code grant in a real browser, shows
// the orders, refreshes its token and signs out. Every part is an ordinary workload behind its sidecar.
import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { chromium, type Browser, type Page } from "playwright-core";
import { chromiumArguments, chromiumPath } from "../tools/chromium-path.ts";
import { freePort, startProcess, waitFor, type StartedProcess } from "../tools/processes.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** A copy of the sample on a port of the test's own; inside the repository, since its programs use the installed libraries. */
async function copyShop(folder: string, port: number): Promise<void> {
  await cp(path.join(root, "samples", "shop"), folder, {
    recursive: true,
    filter: (source) => path.basename(source) !== ".tulle",
  });
  for (const name of await readdir(folder)) {
    if (!name.endsWith(".yaml")) continue;
    const file = path.join(folder, name);
    const text = await readFile(file, "utf8");
    const moved = text
      .replaceAll("localhost:8080", `localhost:${port}`)
      .replaceAll("../../packages", `${root}/packages`);
    await writeFile(file, moved);
  }
}

interface DemoFile {
  readonly user: string;
  readonly password: string;
}

describe("signing in to the shop", () => {
  let parent: string;
  let base: string;
  let up: StartedProcess;
  let browser: Browser;
  let demo: DemoFile;

  before(async () => {
    await mkdir(path.join(root, ".cache"), { recursive: true });
    parent = await mkdtemp(path.join(root, ".cache", "shop-"));
    const folder = path.join(parent, "shop");
    const port = await freePort();
    base = `http://localhost:${port}`;
    await copyShop(folder, port);
    const main = path.join(root, "packages", "cli", "src", "main.ts");
    const env = { XDG_STATE_HOME: path.join(parent, "state"), TULLE_DIR: undefined };
    const args = [main, "up", folder, "--publish", `${port}:8080,${await freePort()}:8443`];
    up = await startProcess(process.execPath, args, { name: "tulle up", env, cwd: parent });
    await up.waitForOutput(/^Ready$/m, { timeoutMs: 60_000 });
    demo = JSON.parse(await readFile(path.join(folder, ".tulle", "oauth2", "demo.json"), "utf8")) as DemoFile;
    browser = await chromium.launch({ executablePath: await chromiumPath(), args: [...chromiumArguments] });
  });

  after(async () => {
    await browser?.close();
    await up?.stop({ signal: "SIGINT", timeoutMs: 30_000 });
    await rm(parent, { recursive: true, force: true });
  });

  async function newPage(): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(15_000);
    return page;
  }

  async function signIn(page: Page): Promise<void> {
    await page.getByLabel("User name").fill(demo.user);
    await page.getByLabel("Password").fill(demo.password);
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  test("login, consent, orders, refresh, logout", async () => {
    const page = await newPage();
    await page.goto(`${base}/client`);
    await page.getByRole("link", { name: "Sign in" }).click();
    await signIn(page);
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
    const page = await newPage();
    await page.goto(`${base}/client/login`);
    await signIn(page);
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
