// Takes pictures of every page in light and dark, on a desktop and on a phone, into the folder that is given:
// `node packages/authorization-server/tools/screenshots.ts FOLDER`. For people who change the pages.
import { mkdirSync } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";
import type { Page } from "playwright-core";
import { chromiumArguments, chromiumPath } from "../../../tests/tools/chromium-path.ts";
import { listeningServer } from "../src/testing/listening-server.ts";
import { testPassword } from "../src/testing/test-server.ts";

const folder = path.resolve(process.argv[2] ?? "screenshots");
mkdirSync(folder, { recursive: true });

await using server = await listeningServer([
  "--scopes",
  "orders.read=See your orders;orders.write=Place orders in your name",
]);
await server.client({
  name: "Orders for Everyone",
  scope: "openid profile email offline_access orders.read orders.write",
  audiences: ["https://shop.example/api/orders"],
});
await server.client({ id: "native", isPublic: true, redirectUris: ["com.example.app:/cb"], name: "Pocket Orders" });
await server.user();
const browser = await chromium.launch({ executablePath: await chromiumPath(), args: [...chromiumArguments] });
const variants = [
  { name: "light", colorScheme: "light", viewport: { width: 1100, height: 800 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1100, height: 800 } },
  { name: "phone", colorScheme: "light", viewport: { width: 360, height: 740 } },
  { name: "phone-dark", colorScheme: "dark", viewport: { width: 360, height: 740 } },
] as const;

function authorizeUrl(more: Readonly<Record<string, string>>): string {
  const parameters = { client_id: "app", response_type: "code", redirect_uri: server.redirectUri };
  return `${server.issuer}/authorize?${new URLSearchParams({ ...parameters, ...more }).toString()}`;
}

async function signIn(page: Page, password: string): Promise<void> {
  await page.getByLabel("User name").fill("ann");
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

for (const { name, ...settings } of variants) {
  const page = await (await browser.newContext(settings)).newPage();
  const shoot = async (what: string): Promise<void> => {
    await page.screenshot({ path: path.join(folder, `${what}-${name}.png`), fullPage: true });
  };
  const all = {
    scope: "openid profile offline_access orders.read orders.write",
    resource: "https://shop.example/api/orders",
    prompt: "consent",
  };
  await page.goto(authorizeUrl(all));
  await shoot("login");
  await signIn(page, "wrong password");
  await shoot("login-wrong");
  await signIn(page, testPassword);
  await shoot("consent");
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByRole("heading", { name: "Back in the application" }).waitFor();
  await page.goto(authorizeUrl({ ...all, prompt: "login" }));
  await shoot("login-again");
  const native = {
    client_id: "native",
    redirect_uri: "com.example.app:/cb",
    scope: "openid",
    code_challenge: "a".repeat(43),
    code_challenge_method: "S256",
  };
  await page.goto(authorizeUrl(native));
  await shoot("consent-public");
  await page.goto(`${server.issuer}/account`);
  await shoot("account");
  await page.goto(`${server.issuer}/logout`);
  await shoot("logout");
  await page.goto(`${server.issuer}/interaction/none`);
  await shoot("expired");
  await page.goto(`${server.issuer}/authorize?client_id=nobody`);
  await shoot("error");
  await page.goto(`${server.issuer}/errors/invalid_grant`);
  await shoot("error-code");
  await page.goto(server.issuer);
  await shoot("home");
  await page.context().close();
}
await browser.close();
