// Authorization requests as clients send them without being told anything of this server: scopes that it does not know,
// answers as a form, redirect URIs on the owner's own machine, and much in `state`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, updateClient } from "../admin/clients.ts";
import { formsOf } from "../testing/browser.ts";
import type { Visit } from "../testing/browser.ts";
import {
  answerOf,
  basic,
  testChallenge,
  testPassword,
  testRedirectUri,
  testRequest as request,
  testSecret,
  testServer,
  testVerifier,
} from "../testing/test-server.ts";

const app = { authorization: basic("app", testSecret) };
const httpsIssuer = ["--issuer", "https://auth.example"];

test("unknown scopes, and those of others, are ignored; the answer names what was granted", async (t) => {
  const server = await testServer(t);
  await server.user();
  await server.client();
  await server.client({ id: "other", scope: "orders.read" });
  const asked = "openid address unheard profile orders.read offline_access";
  const code = (await server.authorize(server.browser(), { ...request, scope: asked })).get("code")!;
  const form = { grant_type: "authorization_code", code, redirect_uri: testRedirectUri };
  const given = await server.post("/token", form, app);
  assert.equal(given.json["scope"], "openid profile offline_access");
  const refresh = { grant_type: "refresh_token", refresh_token: String(given.json["refresh_token"]), scope: asked };
  assert.equal((await server.post("/token", refresh, app)).json["scope"], "openid profile offline_access");
  for (const scope of ["unheard", "orders.read", "unheard address"]) {
    const answer = await server.authorize(server.browser(), { ...request, scope });
    assert.equal(answer.get("error"), "invalid_scope", scope);
  }
});

test("a refresh gives neither a scope nor an audience that the client has lost", async (t) => {
  const server = await testServer(t);
  await server.user();
  const [one, two] = ["https://one.example", "https://two.example"];
  await server.client({ scope: "openid profile a b offline_access", audiences: [one, two] });
  const { database } = server.context;
  const update = (settings: Parameters<typeof updateClient>[3]): Promise<unknown> =>
    updateClient(database, { issuerIsHttp: true }, "app", settings);
  const browser = server.browser();
  const url = `${server.authorizeUrl({ ...request, scope: "a b offline_access" })}&resource=${one}&resource=${two}`;
  const page = await browser.signIn(await browser.open(url), "ann", testPassword);
  const code = answerOf(await browser.decide(page, "allow")).get("code")!;
  const form = { grant_type: "authorization_code", code, redirect_uri: testRedirectUri };
  let last = await server.post("/token", form, app);
  const refresh = async (more: Record<string, string> = {}): Promise<typeof last> => {
    const asked = { grant_type: "refresh_token", refresh_token: String(last.json["refresh_token"]), ...more };
    const answer = await server.post("/token", asked, app);
    if (answer.status === 200) last = answer;
    return answer;
  };
  const audience = async (): Promise<unknown> =>
    (await server.post("/introspect", { token: String(last.json["access_token"]) }, app)).json["aud"];
  assert.equal((await refresh()).json["scope"], "a b offline_access");
  assert.deepEqual(await audience(), [one, two]);
  await update({ scope: "openid profile a offline_access", audiences: [two] });
  assert.equal((await refresh()).json["scope"], "a offline_access");
  assert.equal(await audience(), two);
  assert.equal((await refresh({ resource: one })).json["error"], "invalid_target");
  assert.equal((await refresh({ scope: "b" })).json["error"], "invalid_scope");
  await update({ audiences: ["https://three.example"] });
  assert.equal((await refresh()).json["error"], "invalid_target");
  await update({ audiences: [two], scope: "openid" });
  assert.equal((await refresh()).json["error"], "invalid_scope");
});

function fieldsOf(page: Visit): Readonly<Record<string, string>> {
  assert.equal(page.location, undefined);
  const [form] = formsOf(page.body);
  assert.equal(form?.action, testRedirectUri);
  return form.hidden;
}

test("response_mode=form_post: codes and errors come as a form that submits itself to the client alone", async (t) => {
  const server = await testServer(t);
  await server.user();
  await server.client();
  const browser = server.browser();
  const state = `a&b"<>'é+ %`;
  const asked = { ...request, state, response_mode: "form_post" };
  const login = await browser.open(server.authorizeUrl(asked));
  const consent = await browser.signIn(login, "ann", testPassword);
  const page = await browser.decide(consent, "allow");
  assert.equal(page.status, 200);
  assert.equal(page.headers["cache-control"], "no-store");
  const { code, iss, state: echoed, ...rest } = fieldsOf(page);
  assert.equal(iss, server.issuer);
  assert.equal(echoed, state);
  assert.deepEqual(rest, {});
  const policy = String(page.headers["content-security-policy"]);
  const script = /<script>(.*)<\/script>/.exec(page.body)![1]!;
  const { createHash } = await import("node:crypto");
  assert.ok(policy.includes(`script-src 'sha256-${createHash("sha256").update(script).digest("base64")}'`), policy);
  assert.match(policy, /default-src 'none'.*frame-ancestors 'none'/);
  assert.match(page.body, /<button/, "for browsers without scripts");
  const form = { grant_type: "authorization_code", code: code!, redirect_uri: testRedirectUri };
  assert.equal((await server.post("/token", form, app)).status, 200);
  const refused = fieldsOf(await browser.open(server.authorizeUrl({ ...asked, prompt: "dance" })));
  assert.equal(refused["error"], "invalid_request");
  assert.equal(refused["state"], state);
  const denied = await browser.decide(await browser.open(server.authorizeUrl({ ...asked, prompt: "consent" })), "deny");
  assert.equal(fieldsOf(denied)["error"], "access_denied");
  await server.client({ id: "device", redirectUris: ["com.example.app:/cb"] });
  const device = { ...asked, client_id: "device", redirect_uri: "com.example.app:/cb" };
  const inQuery = answerOf(await browser.open(server.authorizeUrl(device)));
  assert.match(inQuery.get("error_description") ?? "", /needs an http\(s\) redirect URI/);
});

test("a native client of an https issuer: localhost, 127.0.0.1 and [::1] on any port, nothing else varies", async (t) => {
  const server = await testServer(t, { flags: httpsIssuer });
  await server.user();
  const redirectUris = ["http://localhost/cb", "http://127.0.0.1:1/cb", "http://[::1]/cb"];
  await server.client({ id: "native", isPublic: true, redirectUris });
  for (const host of ["localhost", "127.0.0.1", "[::1]"]) {
    const uri = `http://${host}:51234/cb`;
    const parameters = { ...request, ...testChallenge, client_id: "native", redirect_uri: uri };
    const answer = await server.authorize(server.browser(), parameters);
    const form = {
      grant_type: "authorization_code",
      code: answer.get("code")!,
      redirect_uri: uri,
      client_id: "native",
      code_verifier: testVerifier,
    };
    assert.equal((await server.post("/token", form)).status, 200, host);
    for (const other of [
      `http://${host}:51234/other`,
      `https://${host}:51234/cb`,
      `http://${host}.evil.example:1/cb`,
    ]) {
      const page = await server.browser().open(server.authorizeUrl({ ...parameters, redirect_uri: other }));
      assert.equal(page.status, 400, other);
    }
  }
  const rules = { issuerIsHttp: false };
  const confidential = await createClient(server.context.database, rules, {
    id: "web",
    redirectUris: ["http://localhost/cb"],
  });
  assert.match(
    confidential.problems?.join() ?? "",
    /is http; use https\. .*http:\/\/localhost if its client is public \(--public\)/,
  );
});

test("a state of 8 KB comes back, percent-encoded or not; a longer one is refused", async (t) => {
  const server = await testServer(t);
  await server.user();
  await server.client();
  const browser = server.browser();
  for (const state of ["s".repeat(8192), `{"a":"${"é".repeat(1500)}"}`]) {
    const answer = await server.authorize(browser, { ...request, state });
    assert.ok(answer.has("code"));
    assert.equal(answer.get("state"), state);
  }
  const long = await server.authorize(browser, { ...request, state: "s".repeat(8193) });
  assert.match(long.get("error_description") ?? "", /state is longer than 8192/);
});
