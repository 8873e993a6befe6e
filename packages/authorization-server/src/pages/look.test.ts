// An application's name, colour and picture on the pages that lead to it: readable whatever was chosen, and no way in
// for what is not a colour, not a picture, or not a name.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { updateClient } from "../admin/clients.ts";
import { readLogo } from "../admin/logo.ts";
import { testPassword, testRequest, testServer } from "../testing/test-server.ts";
import { accentColours, contrast } from "./look.ts";
import { digestOf } from "./style.ts";

function png(width: number, height: number, more = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(25);
  header.writeUInt32BE(13, 0);
  header.write("IHDR", 4, "latin1");
  header.writeUInt32BE(width, 8);
  header.writeUInt32BE(height, 12);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), header, deflateSync(Buffer.alloc(10)), more]);
}

function jpeg(width: number, height: number): Buffer {
  const size = [height >> 8, height & 255, width >> 8, width & 255];
  return Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc0, 0, 11, 8, ...size, 1, 0, 0, 0]);
}

test("what is written in a chosen colour, or on it, can be read in light and dark (WCAG 1.4.3)", () => {
  const channels = ["00", "33", "80", "cc", "ff"];
  const colours = channels.flatMap((red) =>
    channels.flatMap((green) => channels.map((blue) => `#${red}${green}${blue}`)),
  );
  const cards = { light: "#ffffff", dark: "#1e2226" } as const;
  for (const colour of colours) {
    for (const scheme of ["light", "dark"] as const) {
      const { accent, ink, hover, tint } = accentColours(colour, scheme);
      const pairs: readonly [string, string][] = [
        [accent, cards[scheme]],
        [accent, tint],
        [ink, accent],
        [ink, hover],
      ];
      for (const [one, other] of pairs)
        assert.ok(contrast(one, other) >= 4.5, `${colour} ${scheme}: ${one} on ${other} is ${contrast(one, other)}`);
    }
  }
  assert.equal(accentColours("#0f5e63", "light").accent, "#0f5e63", "what can be read stays as it is");
});

test("a logo is a small PNG or JPEG by its own bytes", () => {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>';
  const cases: readonly [string, Buffer, RegExp][] = [
    ["PNG", png(64, 64), /^data:image\/png;base64,iVBOR/],
    ["JPEG", jpeg(64, 64), /^data:image\/jpeg;base64,/],
    ["SVG", Buffer.from(svg), /neither/],
    ["SVG that begins as a GIF", Buffer.from(`GIF89a=0;${svg}`), /neither/],
    ["HTML", Buffer.from("<!doctype html><script>alert(1)</script>"), /neither/],
    ["too many bytes", png(64, 64, Buffer.alloc(40_000)), /32 KiB/],
    ["unpacks to gigabytes", png(50_000, 50_000), /1024 pixels/],
    ["JPEG that unpacks to gigabytes", jpeg(65_535, 65_535), /1024 pixels/],
    ["no width", png(0, 10), /1024 pixels/],
    ["half a PNG", png(64, 64).subarray(0, 20), /neither/],
    ["half a JPEG", jpeg(64, 64).subarray(0, 12), /neither/],
    ["JPEG whose segments lead nowhere", Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0]), /neither/],
    ["one byte", Buffer.from([0x89]), /neither/],
  ];
  for (const [name, bytes, expected] of cases) {
    const read = readLogo(bytes);
    assert.match("url" in read ? read.url : read.problem, expected, name);
  }
});

test("an application's look is on the pages that lead to it, and on no other", async (context) => {
  const server = await testServer(context, { flags: ["--name", "Example <b> accounts"] });
  await server.client({ name: "Orders", colour: "#ff0000", logo: png(64, 64) });
  await server.user();
  const browser = server.browser();
  const login = await browser.open(server.authorizeUrl(testRequest));
  const consent = await browser.signIn(login, "ann", testPassword);
  for (const page of [login, consent]) {
    const policy = String(page.headers["content-security-policy"]);
    const own = /<style>(:root\{--accent:[^<]*)<\/style>/.exec(page.body)?.[1] ?? "";
    assert.match(own, /prefers-color-scheme:dark/);
    assert.ok(policy.includes(`'sha256-${digestOf(own)}'`), "the policy names its style sheet");
    assert.match(policy, /; img-src data:;/);
    assert.doesNotMatch(policy, /unsafe|\*|img-src [^;]*http/);
    assert.match(
      page.body,
      /<img class="logo" src="data:image\/png;base64,[\w+/=]+" alt="" width="40" height="40" \/>/,
    );
    assert.match(page.body, /<footer><bdi>Example &lt;b&gt; accounts<\/bdi> · <bdi>localhost:9400<\/bdi>/);
  }
  const account = await browser.open(`${server.issuer}/account`);
  assert.doesNotMatch(account.body, /<img|--accent:#[ef]/);
  assert.doesNotMatch(String(account.headers["content-security-policy"]), /img-src/);
  assert.match(account.body, /<title>Your account · Example &lt;b&gt; accounts<\/title>/);
  const rules = { issuerIsHttp: true };
  const { database } = server.context;
  const changed = await updateClient(database, rules, "app", { logo: false, colour: "" });
  assert.equal(changed.problems, undefined);
  const plain = await browser.open(server.authorizeUrl(testRequest));
  assert.doesNotMatch(plain.body, /<img|:root\{--accent:#ff/);
  assert.equal((await updateClient(database, rules, "app", { name: "Other" })).problems, undefined);
});

test("a colour that is none, and a name that turns the text around, are refused", async (context) => {
  const server = await testServer(context);
  await server.client();
  const { database } = server.context;
  const attempts = [
    { colour: "red" },
    { colour: "#fff" },
    { colour: "#ffffff}body{display:none" },
    { colour: "#ffffff</style><script>" },
    { colour: "#ffffff\n" },
    { colour: "url(https://tracker.example)" },
    { logo: Buffer.alloc(0) },
    { logo: Buffer.from("<svg/>") },
    { name: "Bank \u202Egro.live\u202C" },
    { name: "Bank\u2066" },
    { name: "Bank\r\nset-cookie: a=b" },
  ];
  for (const settings of attempts) {
    const { problems } = await updateClient(database, { issuerIsHttp: true }, "app", settings);
    assert.equal(problems?.length, 1, JSON.stringify(settings));
  }
});

test("a name that came to the store otherwise ends with itself", async (context) => {
  const server = await testServer(context);
  await server.client();
  await server.context.database.transaction((transaction) =>
    transaction.run("UPDATE clients SET name = ?", ["</bdi>\u202Eevil"]),
  );
  const { body } = await server.browser().open(server.authorizeUrl(testRequest));
  assert.match(body, /<bdi>&lt;\/bdi&gt;\u202Eevil<\/bdi>/);
});
