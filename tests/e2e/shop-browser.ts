// A person in front of a whole shop: a real browser, and what the demo user does on every page that asks who is there.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { chromiumArguments, headlessShellPath } from "../tools/chromium-path.ts";
import type { ShopInstance } from "./shop-instance.ts";

interface DemoFile {
  readonly user: string;
  readonly password: string;
}

const pageTimeoutMs = 60_000;

export class ShopBrowser implements AsyncDisposable {
  readonly #browser: Browser;
  readonly #demo: DemoFile;

  private constructor(browser: Browser, demo: DemoFile) {
    this.#browser = browser;
    this.#demo = demo;
  }

  /** The shop is whole, and ready. */
  static async open(shop: ShopInstance): Promise<ShopBrowser> {
    const file = path.join(shop.folder, ".tulle", "oauth2", "demo.json");
    const demo = JSON.parse(await readFile(file, "utf8")) as DemoFile;
    const browser = await chromium.launch({ executablePath: await headlessShellPath(), args: [...chromiumArguments] });
    return new ShopBrowser(browser, demo);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }

  /** Of somebody whom no page has seen before. */
  async newPage(): Promise<Page> {
    // The development certificate's authority is nobody's whom the browser knows.
    const page = await (await this.#browser.newContext({ ignoreHTTPSErrors: true })).newPage();
    page.setDefaultTimeout(pageTimeoutMs);
    return page;
  }

  async signIn(page: Page): Promise<void> {
    await page.getByLabel("User name").fill(this.#demo.user);
    await page.getByLabel("Password").fill(this.#demo.password);
    await page.getByRole("button", { name: "Sign in" }).click();
  }
}
