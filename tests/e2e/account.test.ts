// The account page of the shop: the gateway asks people to sign in, passes the access token on alone, keeps the session going and
// ends it. A real browser, the authorization server behind the same gateway, every part an ordinary workload.
import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { chromium, type Browser, type Page } from "playwright-core";
import { chromiumArguments, chromiumPath } from "../tools/chromium-path.ts";
import { envoyPath } from "../tools/envoy-path.ts";
import { freePort, startProcess, type StartedProcess, waitFor } from "../tools/processes.ts";
import { runCommand } from "../tools/run-command.ts";

const root = path.resolve(import.meta.dirname, "../..");
const main = path.join(root, "packages", "cli", "src", "main.ts");

/** A copy of the sample on ports of the test's own; inside the repository, since its programs use the installed libraries. */
async function copyShop(folder: string, port: number, securePort: number): Promise<void> {
  await cp(path.join(root, "samples", "shop"), folder, {
    recursive: true,
    filter: (source) => path.basename(source) !== ".tulle",
  });
  for (const name of await readdir(folder, { recursive: true })) {
    if (!name.endsWith(".yaml")) continue;
    const file = path.join(folder, name);
    const text = await readFile(file, "utf8");
    const moved = text
      .replaceAll("localhost:8080", `localhost:${port}`)
      .replaceAll("localhost:8443", `localhost:${securePort}`)
      .replaceAll("../../packages", `${root}/packages`);
    await writeFile(file, moved);
  }
}

interface Answer {
  readonly status: number;
  readonly location: string;
  readonly body: string;
}

/** `fetch` would add Sec-Fetch-Mode of its own. */
function ask(url: string, headers: http.OutgoingHttpHeaders = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { headers, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, location: response.headers.location ?? "", body }),
      );
    });
    request.on("error", reject);
  });
}

interface DemoFile {
  readonly user: string;
  readonly password: string;
}

const dataPlanes = [
  { name: "Tulle's proxy", args: [] },
  { name: "a stock Envoy", args: ["--proxy", "envoy"] },
];

for (const { name: dataPlane, args: dataPlaneArgs } of dataPlanes) {
  describe(`the account page on ${dataPlane}`, () => {
    let parent: string;
    let folder: string;
    let base: string;
    let secureBase: string;
    let up: StartedProcess;
    let browser: Browser;
    let demo: DemoFile;

    before(async () => {
      await mkdir(path.join(root, ".cache"), { recursive: true });
      parent = await mkdtemp(path.join(root, ".cache", "account-"));
      folder = path.join(parent, "shop");
      const port = await freePort();
      const securePort = await freePort();
      base = `http://localhost:${port}`;
      secureBase = `https://localhost:${securePort}`;
      await copyShop(folder, port, securePort);
      const env = { XDG_STATE_HOME: path.join(parent, "state"), TULLE_DIR: undefined, TULLE_ENVOY: await envoyPath() };
      const args = [
        main,
        "up",
        folder,
        "--publish",
        `${port}:8080`,
        "--publish",
        `${securePort}:8443`,
        ...dataPlaneArgs,
      ];
      up = await startProcess(process.execPath, args, { name: "tulle up", env, cwd: parent });
      await up.waitForOutput(/^Ready$/m, { timeoutMs: 90_000 });
      demo = JSON.parse(await readFile(path.join(folder, ".tulle", "oauth2", "demo.json"), "utf8")) as DemoFile;
      browser = await chromium.launch({ executablePath: await chromiumPath(), args: [...chromiumArguments] });
    });

    after(async () => {
      await browser?.close();
      await up?.stop({ signal: "SIGINT", timeoutMs: 30_000 });
      await rm(parent, { recursive: true, force: true });
    });

    async function tulle(...args: readonly string[]): Promise<string> {
      const env = { XDG_STATE_HOME: path.join(parent, "state"), TULLE_DIR: folder };
      const command = await runCommand(process.execPath, [main, ...args], { env: { ...process.env, ...env } });
      assert.equal(command.code, 0, command.stderr);
      return command.stdout;
    }

    async function newPage(): Promise<Page> {
      // The development certificate's authority is nobody's whom the browser knows.
      const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
      page.setDefaultTimeout(20_000);
      return page;
    }

    async function signIn(page: Page): Promise<void> {
      await page.getByLabel("User name").fill(demo.user);
      await page.getByLabel("Password").fill(demo.password);
      await page.getByRole("button", { name: "Sign in" }).click();
    }

    /** Each time, since the gateway is a public client: nothing proves that it is the one that was allowed before. */
    async function allow(page: Page): Promise<void> {
      await page.getByRole("heading", { name: "Allow Demo gateway?" }).waitFor();
      await page.getByRole("button", { name: "Allow" }).click();
    }

    test("sign-in, the orders, refresh, sign-out", async () => {
      const page = await newPage();
      await page.goto(`${base}/account?from=here`);
      await signIn(page);
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
        assert.doesNotMatch(cookie.value, /^eyJ/, "no token in the clear");
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
      const page = await newPage();
      await page.goto(`${secureBase}/account`);
      assert.ok(page.url().startsWith(`${base}/oauth2/`), page.url());
      await signIn(page);
      await allow(page);
      await page.getByText("Signed in as Demo User").waitFor();
      assert.equal(page.url(), `${secureBase}/account`);
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.waitForURL(`${secureBase}/productpage`);
      await page.context().close();
    });

    test("scripts, forged tokens and forged callbacks", async () => {
      assert.equal((await ask(`${base}/account`, { "sec-fetch-mode": "cors" })).status, 401);
      const forged = await ask(`${base}/account`, { authorization: "Bearer e30.e30.e30" });
      assert.equal(forged.status, 302, "a token of the client's own counts for nothing");
      assert.match(forged.location, /\/oauth2\/authorize\?/);
      const callback = await ask(`${base}/signed-in?code=a&state=b`);
      assert.equal(callback.status, 401);
      assert.equal(callback.body, "OAuth flow failed.");
      // Other pages ask nobody to sign in, and the API takes tokens as before.
      assert.equal((await ask(`${base}/productpage`)).status, 200);
      assert.equal((await ask(`${base}/api/orders`)).status, 401);
    });

    test("under all of the shop's policies people sign in as before", async () => {
      await tulle("apply", "-f", path.join(folder, "policies"));
      const policy = '"name": "account-needs-sign-in"';
      await waitFor(async () => (await tulle("authz", "check", "orders", "-o", "json")).includes(policy), {
        what: "the policy at the orders service",
        timeoutMs: 30_000,
      });
      const page = await newPage();
      await page.goto(`${base}/account`);
      await signIn(page);
      await allow(page);
      await page.getByText("Signed in as Demo User").waitFor();
      await page.context().close();
    });
  });
}
