// What a BrowserLogin may say, and what it means when it says nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText } from "../load/load.ts";

const manifest = (spec: string): string =>
  `apiVersion: security.tulle.io/v1alpha1\nkind: BrowserLogin\nmetadata: { name: login, namespace: shop }\nspec: ${spec}\n`;
const needed = 'gateways: [g], clientID: c, provider: { issuer: "https://i.test" }';

test("the defaults", () => {
  const { resources, findings } = loadText(manifest(`{ ${needed} }`), "login.yaml");
  assert.deepEqual(findings, []);
  const [login] = resources;
  assert.ok(login?.kind === "BrowserLogin");
  assert.deepEqual(login.spec, {
    gateways: ["g"],
    hosts: ["*"],
    provider: { issuer: "https://i.test" },
    clientID: "c",
    clientAuthentication: "client_secret_basic",
    scopes: ["openid"],
    redirectPath: "/oauth2/callback",
    logoutPath: "/logout",
    forwardAccessToken: true,
    refreshToken: true,
    cookies: { sameSite: "Lax" },
  });
});

const refused: readonly { readonly name: string; readonly spec: string; readonly expected: readonly string[] }[] = [
  {
    name: "nothing at all",
    spec: "{}",
    expected: ["spec"],
  },
  {
    name: "one path for coming back and for leaving",
    spec: `{ ${needed}, redirectPath: /a, logoutPath: /a }`,
    expected: ["spec.logoutPath"],
  },
  {
    name: "an end of sessions without OpenID Connect",
    spec: '{ gateways: [g], clientID: c, scopes: [a], provider: { issuer: "https://i", endSessionEndpoint: "https://i/o" } }',
    expected: ["spec.scopes"],
  },
  {
    name: "addresses that are none",
    spec: '{ gateways: [g], clientID: c, provider: { issuer: "i", tokenEndpoint: "ftp://i", authorizationEndpoint: "https://a:b@i/#x" } }',
    expected: ["spec.provider.issuer", "spec.provider.authorizationEndpoint", "spec.provider.tokenEndpoint"],
  },
  {
    name: "paths with a query or an end of line, scopes with spaces",
    spec: `{ ${needed}, redirectPath: "/a?b", logoutPath: "/a\\n", scopes: ["a b", 'a"'] }`,
    expected: ["spec.scopes[0]", "spec.scopes[1]", "spec.redirectPath", "spec.logoutPath"],
  },
  {
    name: "cookies that would never come back",
    spec: `{ ${needed}, cookies: { sameSite: Strict } }`,
    expected: ["spec.cookies.sameSite"],
  },
];
for (const { name, spec, expected } of refused) {
  test(`refused: ${name}`, () => {
    const { resources, findings } = loadText(manifest(spec), "login.yaml");
    assert.deepEqual(
      new Set(findings.map(({ path }) => path)),
      new Set(expected),
      JSON.stringify(findings.map(({ path, message }) => [path, message])),
    );
    assert.deepEqual(resources, []);
  });
}
