// Whoever reads German gets German, on every page from the request to its end, and clients get what they got before.
import assert from "node:assert/strict";
import { test } from "node:test";
import { askFor, galleryData, pageGallery } from "../testing/page-gallery.ts";
import { testChallenge, testPassword, testRequest, testServer } from "../testing/test-server.ts";
import { languages, languageTags, lookupLanguage, rangesOfAcceptLanguage, rangesOfUiLocales } from "./languages.ts";
import { duration } from "./speech.ts";

/** Each leaf of a table by its path. */
function leaves(value: object, path = ""): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [key, item] of Object.entries(value)) {
    if (typeof item === "string") found.set(path + key, item);
    else for (const [name, text] of leaves(item as object, `${path}${key}.`)) found.set(name, text);
  }
  return found;
}

function placeholders(text: string): readonly string[] {
  return (text.match(/\{\w+\}/g) ?? []).toSorted();
}

/** What a person sees or hears of a page: its texts, and the labels that screen readers say. */
function wordsOf(body: string): readonly string[] {
  const withoutCode = body
    .replace(/<(style|script)>.*?<\/\1>/gs, "")
    .replace(/<dt>\w+<\/dt>|<code>.*?<\/code>|<dd lang="en".*?<\/dd>|<time.*?<\/time>/gs, "|");
  const labels = [...withoutCode.matchAll(/(?:aria-label|title|alt|placeholder|data-other)="([^"]*)"/g)];
  const texts = withoutCode.replace(/<[^>]*>/g, "|").split("|");
  return [...texts, ...labels.map((label) => label[1]!)]
    .map((text) => text.trim())
    .filter((text) => /\p{L}{2}/u.test(text));
}

/** "Error" is Spanish as well. */
function isMeant(tag: string, text: string): boolean {
  return tag === "es" && /^Error( \w+ · .*)?$/.test(text);
}

test("no page of another language has English left", async (context) => {
  const server = await testServer(context);
  const host = new URL(server.issuer).host;
  const english = pageGallery(server.context, askFor("ui_locales=en"));
  const data = new Set([
    ...galleryData,
    host,
    "Firefox, Linux",
    "orders.read",
    "department",
    "192.0.2.1 ·",
    "5 minutes",
  ]);
  for (const tag of languageTags.filter((candidate) => candidate !== "en")) {
    for (const [name, page] of pageGallery(server.context, askFor(`ui_locales=${tag}`))) {
      const before = new Set(wordsOf(english.get(name)!.body));
      assert.ok(before.size >= 2, `${name} says something`);
      const left = wordsOf(page.body).filter((text) => before.has(text) && !data.has(text));
      assert.deepEqual(
        left.filter((text) => !isMeant(tag, text)),
        [],
        `${name} in ${tag}`,
      );
      assert.match(page.body, new RegExp(`<html lang="${tag}">`));
      assert.equal(page.headers["content-language"], tag);
      assert.equal(page.headers["vary"], "Accept-Language");
      assert.doesNotMatch(
        page.body.replace(/<(style|script)>.*?<\/\1>/gs, ""),
        /\{\w+\}|undefined/,
        `${name} in ${tag}`,
      );
    }
  }
});

test("each language fills the same places, in every message", () => {
  const english = leaves(languages.en);
  for (const tag of languageTags) {
    assert.equal(languages[tag].language, tag);
    for (const [name, text] of leaves(languages[tag])) {
      // Plural categories are each language's own.
      const model = english.get(name) ?? english.get(name.replace(/\w+$/, "other"))!;
      assert.deepEqual(placeholders(text), placeholders(model), `${name} in ${tag}`);
      assert.equal(text, text.trim(), `${name} in ${tag}`);
      assert.notEqual(text, "", `${name} in ${tag}`);
    }
  }
});

test("the language is looked up as RFC 4647 3.4 does", () => {
  const asked: readonly [string, string | undefined][] = [
    ["de", "de"],
    ["de-CH-1996", "de"],
    ["DE-at", "de"],
    ["zh-Hant-TW ja-JP de", "ja"],
    ["fr-x-private", "fr"],
    ["x-de", undefined],
    ["deu", undefined],
    ["den", undefined],
    ["", undefined],
    ["   de ", "de"],
    ["constructor", undefined],
    ["__proto__", undefined],
    ['de"><script>', undefined],
    [`${"xx ".repeat(5000)}de`, undefined],
    [`de${"-abcdefgh".repeat(1200)}`, "de"],
  ];
  for (const [text, expected] of asked)
    assert.equal(lookupLanguage(rangesOfUiLocales(text)), expected, text.slice(0, 40));
  const accepted: readonly [string, string | undefined][] = [
    ["fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5", "fr"],
    ["it, ja;q=0.1", "ja"],
    ["de;q=0, en", "en"],
    ["en;q=0.2,de;q=0.9", "de"],
    ["*", undefined],
    ["de;q=nonsense", undefined],
    [";;;,,,q=1", undefined],
    [`${"it,".repeat(9000)}de`, undefined],
  ];
  for (const [header, expected] of accepted)
    assert.equal(lookupLanguage(rangesOfAcceptLanguage(header)), expected, header.slice(0, 40));
});

test("a wait is told in the language's own words, and never too short", () => {
  const cases: readonly [keyof typeof languages, number, string][] = [
    ["en", 1, "1 second"],
    ["en", 45, "45 seconds"],
    ["en", 91, "2 minutes"],
    ["en", 300, "5 minutes"],
    ["de", 1, "1 Sekunde"],
    ["de", 300, "5 Minuten"],
    ["fr", 300, "5 minutes"],
    ["es", 60, "60 segundos"],
    ["ja", 300, "5 分"],
    ["en", 7201, "3 hours"],
  ];
  for (const [tag, seconds, expected] of cases) assert.equal(duration(languages[tag], seconds), expected);
});

test("ui_locales holds from the request to its end, over what the browser says", async (context) => {
  const server = await testServer(context);
  await server.client();
  await server.user();
  const browser = server.browser();
  browser.headers["accept-language"] = "ja";
  const login = await browser.open(server.authorizeUrl({ ...testRequest, ui_locales: "xx de-CH fr" }));
  assert.match(login.body, /<html lang="de">.*Anmelden.*weiter zu/s);
  const wrong = await browser.signIn(login, "ann", "not it");
  assert.equal(wrong.status, 400);
  assert.match(wrong.body, /Der Benutzername oder das Passwort ist falsch/);
  const consent = await browser.signIn(wrong, "ann", testPassword);
  assert.match(consent.body, /<html lang="de">.*Ihren Namen sehen/s);
  assert.match(consent.body, /<a href="[^"]*\/account"[^>]*>[^<]*Kontoseite/);
  const answer = await browser.decide(consent, "deny");
  // RFC 6749 §4.1.2.1: what clients read stays ASCII, and in English.
  assert.match(answer.location ?? "", /error_description=the%20owner%20denied/);
  const over = await browser.open(consent.url);
  assert.match(over.body, /<html lang="de">.*Sie haben app nichts erlaubt.*href="https:\/\/client.example"/s);
  const refused = await browser.open(`${server.issuer}/authorize?client_id=nobody&ui_locales=es`);
  assert.match(refused.body, /<html lang="es">.*No se puede responder/s);
});

test("who asks for nothing gets the browser's language, else the server's", async (context) => {
  const server = await testServer(context, { flags: ["--language", "fr"] });
  const browser = server.browser();
  assert.match((await browser.open(`${server.issuer}/account`)).body, /<html lang="fr">/);
  browser.headers["accept-language"] = "it;q=1, es-MX;q=0.4";
  assert.match((await browser.open(`${server.issuer}/account`)).body, /<html lang="es">/);
  const login = await browser.open(`${server.issuer}/account?ui_locales=ja`);
  assert.match(login.body, /<html lang="ja">.*アカウントを表示します/s);
  await server.user();
  const account = await browser.signIn(login, "ann", testPassword);
  assert.match(account.body, /<html lang="ja">.*ann<\/bdi> としてログイン中/s);
  assert.match((await browser.submit(account, /sign-out/, {})).body, /<html lang="ja">.*ログアウトしました/s);
  assert.match((await browser.open(`${server.issuer}/nowhere?ui_locales=de`)).body, /Hier ist nichts/);
});

test("the operator's words for a scope may be in several languages", async (context) => {
  const scopes = "orders.read=See your orders;orders.read#de=Ihre Bestellungen sehen";
  const server = await testServer(context, { flags: ["--scopes", scopes] });
  await server.client({ scope: "openid orders.read" });
  await server.user();
  const show = async (ui_locales: string): Promise<string> => {
    const browser = server.browser();
    const request = { ...testRequest, scope: "orders.read", ui_locales };
    return (await browser.signIn(await browser.open(server.authorizeUrl(request)), "ann", testPassword)).body;
  };
  assert.match(await show("de"), /Ihre Bestellungen sehen/);
  assert.match(await show("fr"), /See your orders/);
});

test("discovery names the languages, and each described scope once", async (context) => {
  const server = await testServer(context, { flags: ["--scopes", "a=A;a#de=Ä;b#fr=B"] });
  const visit = await server.browser().open(`${server.issuer}/.well-known/openid-configuration`);
  const metadata = JSON.parse(visit.body) as Record<string, readonly string[]>;
  assert.deepEqual(metadata["ui_locales_supported"], ["en", "de", "fr", "es", "ja"]);
  assert.deepEqual(metadata["scopes_supported"]!.slice(-2), ["a", "b"]);
});

test("a hostile ui_locales changes nothing but the language", async (context) => {
  const server = await testServer(context);
  await server.client();
  for (const text of ['"><script>alert(1)</script>', "de\r\nset-cookie: a=b", "'", "x".repeat(10_000), "<de>"]) {
    const visit = await server
      .browser()
      .open(server.authorizeUrl({ ...testRequest, ...testChallenge, ui_locales: text }));
    assert.match(visit.body === "" ? String(visit.location) : visit.body, /<html lang="en">|error=invalid_request/);
    assert.equal(visit.body.includes("<script>alert"), false);
    assert.equal(String(visit.headers["content-language"] ?? "en"), "en");
    assert.equal(String(visit.headers["set-cookie"] ?? "").includes("a=b"), false);
  }
});
