// Takes pictures of every page in light and dark, on a desktop and on a phone, into the folder that is given: `node
// packages/authorization-server/tools/screenshots.ts FOLDER [LANGUAGE…]`. For people who change the pages. It says
// which pages are wider than their window.
import { mkdirSync } from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";
import { chromiumArguments, chromiumPath } from "../../../tests/tools/chromium-path.ts";
import { listeningServer } from "../src/testing/listening-server.ts";
import { askFor, galleryNames, pageGallery } from "../src/testing/page-gallery.ts";

const folder = path.resolve(process.argv[2] ?? "screenshots");
const languages = process.argv.length > 3 ? process.argv.slice(3) : ["en", "ja"];
mkdirSync(folder, { recursive: true });

await using server = await listeningServer(["--scopes", "orders.read=See your orders"]);
const browser = await chromium.launch({ executablePath: await chromiumPath(), args: [...chromiumArguments] });
const variants = [
  { name: "light", colorScheme: "light", viewport: { width: 1100, height: 800 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1100, height: 800 } },
  { name: "phone", colorScheme: "light", viewport: { width: 360, height: 740 } },
  { name: "phone-dark", colorScheme: "dark", viewport: { width: 360, height: 740 } },
] as const;
/** What strains a page: a name without a space, one from right to left, and one as long as can be. */
const names = {
  plain: galleryNames,
  rtl: { client: "מערכת ההזמנות (2)", user: "دانا" },
  long: { client: "Donaudampfschifffahrtsgesellschaft".repeat(2), user: "x".repeat(100) },
};

for (const { name: variant, ...settings } of variants) {
  const page = await (await browser.newContext(settings)).newPage();
  for (const language of languages) {
    for (const [kind, shown] of Object.entries(names)) {
      for (const [name, { body }] of pageGallery(server.running.context, askFor(`ui_locales=${language}`), shown)) {
        if (name.startsWith("error-") && name !== "error-invalid_grant") continue;
        if (kind !== "plain" && !/^(login-again|consent|account|logout)$/.test(name)) continue;
        await page.setContent(body);
        const overflow = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
        if (overflow === true) console.log(`wider than its window: ${name} ${kind} ${language} ${variant}`);
        await page.screenshot({
          path: path.join(folder, `${name}-${kind}-${language}-${variant}.png`),
          fullPage: true,
        });
      }
    }
  }
  await page.context().close();
}
await browser.close();
