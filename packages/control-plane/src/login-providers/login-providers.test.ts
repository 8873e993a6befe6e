// Metadata of OpenID providers: what is believed, when they are asked, and that the last good answer stays.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import type { MeshBrowserLogin, ProviderLocation } from "../snapshot/browser-logins.ts";
import { type FetchedDocument, LoginProviders, maxProviders } from "./login-providers.ts";
import type { SavedEndpoints } from "./saved-provider.ts";
import { metadataUrl, readProviderMetadata } from "./provider-metadata.ts";

const issuer = "https://issuer.test/a";
const good = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  end_session_endpoint: `${issuer}/logout`,
};
const endpoints = {
  authorizationEndpoint: `${issuer}/authorize`,
  tokenEndpoint: `${issuer}/token`,
  endSessionEndpoint: `${issuer}/logout`,
};

const documents: readonly { readonly name: string; readonly text: string; readonly expected: object }[] = [
  { name: "good ones", text: JSON.stringify(good), expected: { endpoints } },
  { name: "only an issuer", text: JSON.stringify({ issuer }), expected: { endpoints: {} } },
  { name: "no JSON", text: "<html>", expected: { problem: "the metadata are not JSON" } },
  { name: "no object", text: "null", expected: { problem: "the metadata are not an object" } },
  {
    name: "another issuer",
    text: JSON.stringify({ ...good, issuer: `${issuer}/` }),
    expected: { problem: "the metadata are those of another issuer" },
  },
  {
    name: "a token endpoint in the clear",
    text: JSON.stringify({ ...good, token_endpoint: "http://issuer.test/token" }),
    expected: { problem: "token_endpoint is not encrypted, and the issuer is" },
  },
  {
    name: "a script for an address",
    text: JSON.stringify({ ...good, authorization_endpoint: "javascript:alert(1)" }),
    expected: { problem: "authorization_endpoint is no http or https URL" },
  },
  {
    name: "credentials",
    text: JSON.stringify({ ...good, end_session_endpoint: "https://a:b@issuer.test/" }),
    expected: { problem: "end_session_endpoint has credentials or a fragment" },
  },
];
for (const { name, text, expected } of documents) {
  test(`metadata: ${name}`, () => assert.deepEqual(readProviderMetadata(text, issuer), expected));
}

test("metadata lie below the issuer", () => {
  assert.equal(metadataUrl(issuer), `${issuer}/.well-known/openid-configuration`);
  assert.equal(metadataUrl("https://issuer.test/"), "https://issuer.test/.well-known/openid-configuration");
});

function bench(answer: FetchedDocument, saved: SavedEndpoints = new Map()) {
  const clock = new ManualClock();
  const asked: ProviderLocation[] = [];
  const made = { clock, asked, answer, changes: 0, saved: [] as SavedEndpoints[] };
  const providers = new LoginProviders({
    clock,
    log: new Logging({ level: "off" }).logger("test"),
    fetch: (location) => {
      asked.push(location);
      return Promise.resolve(made.answer);
    },
    saved,
    save: (all) => made.saved.push(all),
  });
  providers.follow(() => (made.changes += 1));
  return Object.assign(made, { providers });
}

test("asked at once, again after failures, and hourly; the last good answer stays", async () => {
  const made = bench({ problem: "down" });
  const { providers, clock } = made;
  providers.want([{ issuer }]);
  providers.want([{ issuer }]);
  assert.equal(clock.waiting.length, 1);
  for (let failures = 0; failures < 3; failures += 1) await clock.next();
  assert.deepEqual(clock.waiting, [1000]);
  made.answer = { text: JSON.stringify(good) };
  await clock.next();
  assert.deepEqual([...providers.endpoints], [[issuer, endpoints]]);
  assert.deepEqual(clock.waiting, [3_600_000]);
  made.answer = { problem: "down again" };
  await clock.next();
  assert.equal(providers.endpoints.size, 1);
  made.answer = { text: JSON.stringify(good) };
  await clock.next();
  assert.equal(made.changes, 1);
  providers.want([]);
  assert.deepEqual([providers.endpoints.size, clock.waiting.length], [0, 0]);
});

test("endpoints that do not come are told of at the resource", async () => {
  const made = bench({ problem: "answered with status 404" });
  const { providers, clock } = made;
  const login = { namespace: "shop", name: "account", discovery: { issuer } } as unknown as MeshBrowserLogin;
  const complete = { namespace: "shop", name: "complete" } as unknown as MeshBrowserLogin;
  const messages = (): readonly string[] => providers.findings([login, complete]).map(({ message }) => message);
  providers.want([{ issuer }]);
  for (let failures = 1; failures < 5; failures += 1) {
    await clock.next();
    assert.deepEqual(messages(), [], "the provider may be starting");
  }
  await clock.next();
  const told = `the endpoints of ${issuer} could not be fetched (answered with status 404)`;
  assert.deepEqual(providers.findings([login, complete]), [
    {
      code: "TUL0010",
      severity: "warning",
      message: `${told}; its pages answer 503 until they are there`,
      resource: { kind: "BrowserLogin", namespace: "shop", name: "account" },
      path: "spec.provider.issuer",
    },
  ]);
  made.answer = { text: JSON.stringify(good) };
  await clock.next();
  assert.deepEqual(messages(), []);
  made.answer = { problem: "answered with status 404" };
  for (let failures = 1; failures <= 5; failures += 1) await clock.next();
  assert.deepEqual(messages(), [`${told}; the last ones go on`]);
});

test("a provider of the mesh is asked again when endpoints change", async () => {
  const made = bench({ problem: "no ready endpoint" });
  const { providers, clock } = made;
  const service = { hostname: "oauth2.shop.svc.cluster.local", port: 80 };
  providers.want([{ issuer, service }, { issuer: "https://elsewhere.test" }]);
  await clock.next();
  await clock.next();
  made.asked.length = 0;
  made.answer = { text: JSON.stringify(good) };
  providers.askAgain();
  await clock.next();
  assert.deepEqual(made.asked, [{ issuer, service }]);
  assert.deepEqual([...providers.endpoints.keys()], [`${issuer} at ${service.hostname}:80`]);
});

test("what an earlier run knew serves at once, where somebody still names it", async () => {
  const made = bench({ text: JSON.stringify(good) }, new Map([[issuer, endpoints]]));
  const { providers, clock } = made;
  providers.want([{ issuer }]);
  assert.deepEqual(providers.endpoints.get(issuer), endpoints);
  await clock.next();
  assert.deepEqual([made.changes, made.saved], [0, []], "nothing is new");
  providers.want([]);
  assert.equal(providers.endpoints.size, 0);
});

test("there is a limit to the number of providers", () => {
  const { providers, clock } = bench({ problem: "unused" });
  providers.want(Array.from({ length: maxProviders + 5 }, (_, number) => ({ issuer: `https://${number}.test` })));
  assert.equal(clock.waiting.length, maxProviders);
  providers.close();
});
