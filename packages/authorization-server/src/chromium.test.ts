// The flow as a person sees it, in a real browser: content security policy, cookies, redirects and the back button
// included.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { chromium } from "playwright-core";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { chromiumArguments, headlessShellPath } from "../../../tests/tools/chromium-path.ts";
import type { ListeningServer } from "./testing/listening-server.ts";
import { listeningServer } from "./testing/listening-server.ts";
import { testPassword } from "./testing/test-server.ts";

let browser: Browser;
/** What two people use. A context of each test's own would cost it processes: these forget all after each test. */
let own: BrowserContext;
let another: BrowserContext;
let server: ListeningServer;

before(async () => {
  const quiet = [
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ];
  browser = await chromium.launch({
    executablePath: await headlessShellPath(),
    args: [...chromiumArguments, ...quiet],
  });
  own = await browser.newContext();
  another = await browser.newContext();
  server = await listeningServer();
  await server.client({ name: "Orders" });
  for (const name of ["ann", "bob", "cid", "dan", "eve", "fay", "gil", "hal"]) await server.user(name);
});

afterEach(async () => {
  for (const context of [own, another]) {
    for (const page of context.pages()) await page.close();
    await context.clearCookies();
  }
});

after(async () => {
  await browser.close();
  await server[Symbol.asyncDispose]();
});

function authorizeUrl(more: Readonly<Record<string, string>> = {}): string {
  const parameters = {
    client_id: "app",
    response_type: "code",
    redirect_uri: server.redirectUri,
    scope: "openid profile",
    state: "s",
  };
  return `${server.issuer}/authorize?${new URLSearchParams({ ...parameters, ...more }).toString()}`;
}

async function newPage(context = own): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  return page;
}

async function signIn(page: Page, name: string, password = testPassword): Promise<void> {
  await page.getByLabel("User name").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

async function backInApplication(page: Page): Promise<URLSearchParams> {
  await page.getByRole("heading", { name: "Back in the application" }).waitFor();
  return new URL(page.url()).searchParams;
}

test("login, consent, and remembered consent afterwards", async () => {
  const page = await newPage();
  await page.goto(authorizeUrl());
  assert.equal(await page.title(), `Sign in · ${new URL(server.issuer).host}`);
  await signIn(page, "ann");
  await page.getByRole("heading", { name: "Allow Orders?" }).waitFor();
  assert.match((await page.textContent("main")) ?? "", /Signed in as ann.*See your name.*sent on to 127\.0\.0\.1/s);
  await page.getByRole("button", { name: "Allow" }).click();
  const first = await backInApplication(page);
  assert.match(first.get("code") ?? "", /^[\w-]{43}$/);
  assert.equal(first.get("state"), "s");
  assert.equal(first.get("iss"), server.issuer);
  await page.goto(authorizeUrl({ state: "again" }));
  const second = await backInApplication(page);
  assert.equal(second.get("state"), "again");
});

test("deny sends access_denied to the application", async () => {
  const page = await newPage();
  await page.goto(authorizeUrl());
  await signIn(page, "bob");
  await page.getByRole("button", { name: "Deny" }).click();
  const answer = await backInApplication(page);
  assert.equal(answer.get("error"), "access_denied");
  assert.equal(answer.get("code"), null);
});

test("a wrong password is said, by name of neither, and the right one goes on", async () => {
  const page = await newPage();
  await page.goto(authorizeUrl());
  await signIn(page, "cid", "wrong password");
  assert.equal(await page.getByRole("alert").textContent(), "The user name or the password is not right.");
  assert.equal(await page.getByLabel("User name").inputValue(), "cid");
  await page.getByLabel("Password").fill(testPassword);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Allow" }).waitFor();
});

test("the back button leads to a page that explains, never to a second answer", async () => {
  const page = await newPage();
  await page.goto(authorizeUrl());
  await signIn(page, "dan");
  await page.getByRole("button", { name: "Allow" }).click();
  await backInApplication(page);
  const answersBefore = server.answers.length;
  await page.goBack();
  await page.getByRole("heading", { name: "This page has expired" }).waitFor();
  assert.equal(server.answers.length, answersBefore);
});

test("an interaction of another browser, or one that is over, has expired", async () => {
  const page = await newPage();
  await page.goto(authorizeUrl());
  await signIn(page, "eve");
  await page.getByRole("button", { name: "Allow" }).waitFor();
  const stranger = await newPage(another);
  await stranger.goto(page.url());
  await stranger.getByRole("heading", { name: "This page has expired" }).waitFor();
  await server.running.context.database.transaction((transaction) =>
    transaction.run("UPDATE interactions SET expires_at = ?", [0]),
  );
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByRole("heading", { name: "This page has expired" }).waitFor();
});

test("the owner takes a grant back on the account page, and is asked again", async () => {
  const page = await newPage();
  await page.goto(authorizeUrl());
  await signIn(page, "eve");
  await page.getByRole("button", { name: "Allow" }).click();
  await backInApplication(page);
  await page.goto(`${server.issuer}/account`);
  await page.getByRole("button", { name: "Take back the access of Orders" }).click();
  assert.equal(await page.getByRole("status").textContent(), "The application no longer has access.");
  await page.goto(authorizeUrl());
  await page.getByRole("heading", { name: "Allow Orders?" }).waitFor();
});

test("a password change signs out everywhere; sign-out ends the session", async () => {
  const page = await newPage();
  const other = await newPage(another);
  for (const each of [page, other]) {
    await each.goto(`${server.issuer}/account`);
    await signIn(each, "fay");
    await each.getByRole("heading", { name: "Your account" }).waitFor();
  }
  await page.getByLabel("Current password").fill(testPassword);
  await page.getByLabel("New password").fill("another password");
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByText("Your password is changed").waitFor();
  await other.goto(`${server.issuer}/account`);
  await signIn(other, "fay", "another password");
  await other.getByRole("button", { name: "Sign out", exact: true }).click();
  await other.getByRole("heading", { name: "You are signed out" }).waitFor();
  await other.goto(`${server.issuer}/account`);
  await other.getByRole("heading", { name: "Sign in" }).waitFor();
});

test("a password can be shown, and is hidden again when it is sent; without scripts the form works without the button", async () => {
  const page = await newPage();
  await page.goto(authorizeUrl());
  const field = page.getByLabel("Password");
  await field.fill(testPassword);
  const place = await field.boundingBox();
  await page.getByRole("button", { name: "Show" }).click();
  assert.equal(await field.getAttribute("type"), "text");
  assert.deepEqual(await field.boundingBox(), place, "nothing has moved");
  await page.getByRole("button", { name: "Hide" }).waitFor();
  const sent = page.waitForRequest((request) => request.method() === "POST");
  await page.getByLabel("User name").fill("gil");
  const whenSent = `(() => { const form = document.forms[0];
    form.addEventListener("submit", (event) => event.preventDefault(), { once: true });
    form.requestSubmit();
    return form.elements.password.type; })()`;
  assert.equal(await page.evaluate(whenSent), "password");
  await page.getByRole("button", { name: "Sign in" }).click();
  assert.match((await sent).postData() ?? "", /username=gil&password=correct\+horse\+battery$/);
  await page.getByRole("heading", { name: "Allow Orders?" }).waitFor();
  const context = await browser.newContext({ javaScriptEnabled: false, locale: "de-DE" });
  const plain = await context.newPage();
  await plain.goto(authorizeUrl());
  assert.equal(await plain.getByRole("button").count(), 1);
  await plain.getByLabel("Benutzername").fill("gil");
  await plain.getByLabel("Passwort").fill(testPassword);
  await plain.getByRole("button", { name: "Anmelden" }).click();
  await plain.getByRole("heading", { name: "Orders erlauben?" }).waitFor();
  await context.close();
});

test("a password manager finds the user's name in the form that changes the password", async () => {
  const page = await newPage();
  await page.goto(`${server.issuer}/account`);
  await signIn(page, "gil");
  const form = page.locator("form", { has: page.getByLabel("New password") });
  const fields = await form.locator("input:not([type=hidden])").all();
  const found = await Promise.all(
    fields.map(async (field) => [
      await field.getAttribute("autocomplete"),
      await field.inputValue(),
      await field.isVisible(),
    ]),
  );
  assert.deepEqual(found, [
    ["username", "gil", false],
    ["current-password", "", true],
    ["new-password", "", true],
  ]);
});

test("the owner unticks a scope with the keyboard, and the application gets the rest", async () => {
  const page = await newPage();
  await page.goto(authorizeUrl({ scope: "openid profile email", prompt: "consent" }));
  await signIn(page, "hal");
  const group = page.getByRole("group", { name: "Orders asks to:" });
  assert.equal(await group.getByRole("checkbox").count(), 2, "openid has none");
  await group.getByRole("checkbox", { name: "See your email address" }).focus();
  await page.keyboard.press("Space");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Allow");
  await page.keyboard.press("Enter");
  await backInApplication(page);
  await page.goto(`${server.issuer}/account`);
  const listed = await page.getByRole("listitem").filter({ hasText: "Orders" }).first().textContent();
  assert.match(listed ?? "", /See your name/);
  assert.doesNotMatch(listed ?? "", /email/);
});

test("an application's picture and colour show, within the policy of the page", async () => {
  const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  await server.client({ id: "bright", name: "Bright", colour: "#c00000", logo: Buffer.from(onePixel, "base64") });
  const page = await newPage();
  const problems: string[] = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  await page.goto(authorizeUrl({ client_id: "bright" }));
  assert.equal(await page.evaluate("document.querySelector('.logo').naturalWidth"), 1);
  assert.equal(
    await page.evaluate("getComputedStyle(document.querySelector('.primary')).backgroundColor"),
    "rgb(192, 0, 0)",
  );
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await page.evaluate("getComputedStyle(document.querySelector('.primary')).backgroundColor");
  assert.notEqual(dark, "rgb(192, 0, 0)", "too dark on a dark card");
  assert.deepEqual(problems, []);
});

test("pages refuse to be framed and break no rule of their own policy", async () => {
  const page = await newPage();
  const problems: string[] = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  await page.goto(authorizeUrl());
  const font = await page.evaluate(`getComputedStyle(document.querySelector("main")).borderRadius`);
  assert.equal(font, "16px", "the style sheet is in effect");
  assert.deepEqual(problems, []);
  await page.goto(server.redirectUri);
  const framed = page.waitForResponse((response) => response.url().includes("/authorize"));
  await page.evaluate(`document.body.innerHTML = '<iframe src="${authorizeUrl()}"></iframe>'`);
  assert.equal((await framed).status(), 400);
});

test("a window that an application opened for the sign-in and sign-out keeps its opener", async () => {
  const page = await newPage();
  await page.goto(server.redirectUri);
  const opened = page.waitForEvent("popup");
  await page.evaluate(`window.opened = open(${JSON.stringify(authorizeUrl())})`);
  const shown = await opened;
  await signIn(shown, "cid");
  const allow = shown.getByRole("button", { name: "Allow" });
  await allow.waitFor();
  assert.equal(await page.evaluate("opened.closed"), false);
  await allow.click();
  await backInApplication(shown);
  assert.equal(await shown.evaluate("opener.location.href"), server.redirectUri);
  await shown.goto(`${server.issuer}/logout`);
  await shown.getByRole("button", { name: "Sign out" }).waitFor();
  assert.equal(await page.evaluate("opened.closed"), false);
});

test("the account page keeps no opener, which could lead it elsewhere", async () => {
  const page = await newPage();
  await page.goto(`${server.issuer}/account`);
  await signIn(page, "bob");
  await page.getByRole("heading", { name: "Your account" }).waitFor();
  const opener = await page.context().newPage();
  await opener.goto(server.redirectUri);
  const opened = opener.waitForEvent("popup");
  await opener.evaluate(`window.opened = open("${server.issuer}/account")`);
  const shown = await opened;
  await shown.getByRole("heading", { name: "Your account" }).waitFor();
  assert.equal(await shown.evaluate("opener"), null);
  assert.equal(await opener.evaluate("opened.closed"), true, "as far as the opener can tell");
});
