// Sign-in at the gateway, step by step and attack by attack, on a data path with real sockets.
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import http from "node:http";
import { type TestContext, test } from "node:test";
import { toBinary } from "@bufbuild/protobuf";
import { OAuth2Schema } from "@tulle/xds/envoy/extensions/filters/http/oauth2/v3/oauth_pb";
import { detachedScope } from "../../../fields/compile-scope.ts";
import { Place, Problems, problemText } from "../../../fields/problems.ts";
import { typeUrlOf } from "../../../fields/typed-config.ts";
import { fromConfiguration } from "../../../testing/from-configuration.ts";
import { forwardTo, handBuiltCluster } from "../../../testing/hand-built-runtime.ts";
import { ManualClock } from "../../../testing/manual-clock.ts";
import { runProxy, until } from "../../../testing/running-proxy.ts";
import { oauth2Registration } from "./oauth2-registration.ts";
import { Browser, type Page, startTokenEndpoint } from "../../../testing/sign-in-stage.ts";

const signIn = {
  token_endpoint: { cluster: "issuer", uri: "http://issuer.test/token", timeout: "5s" },
  authorization_endpoint: "https://issuer.test/authorize?tenant=a",
  redirect_uri: "%REQ(x-forwarded-proto)%://%REQ(:authority)%/signed-in",
  redirect_path_matcher: { path: { exact: "/signed-in" } },
  signout_path: { path: { exact: "/sign-out" } },
  credentials: { client_id: "shop", token_secret: { name: "client" }, hmac_secret: { name: "hmac" } },
  auth_scopes: ["orders.read"],
  forward_bearer_token: true,
  deny_redirect_matcher: [{ name: "x-requested-with", string_match: { exact: "XMLHttpRequest" } }],
};
const openId = { auth_scopes: ["openid"], end_session_endpoint: "https://issuer.test/logout" };

interface Stage {
  readonly browser: Browser;
  readonly newBrowser: () => Browser;
  readonly endpoint: Awaited<ReturnType<typeof startTokenEndpoint>>;
  readonly clock: ManualClock;
  readonly log: readonly string[];
  readonly setSecret: (name: string, text: string | undefined) => void;
  readonly counter: (name: string) => number;
}

async function stage(t: TestContext, config: object = {}): Promise<Stage> {
  const clock = new ManualClock();
  const endpoint = await startTokenEndpoint(() => Math.floor(clock.wallMs() / 1000));
  const app = http.createServer((request, response) => {
    response.end(JSON.stringify({ path: request.url, headers: request.headers }));
  });
  await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    endpoint.close();
    app.close();
    app.closeAllConnections();
  });
  const scope = detachedScope();
  const setSecret = (name: string, text: string | undefined): void =>
    scope
      .secretSlot(name, { kind: "static" }, 0)
      .put(text === undefined ? undefined : { type: "generic_secret", secret: Buffer.from(text) });
  setSecret("client", "client secret");
  setSecret("hmac", "a secret of the gateway");
  scope.clusterSlot("issuer").current = handBuiltCluster("issuer", [endpoint.port]);
  const problems = new Problems();
  const bytes = toBinary(OAuth2Schema, fromConfiguration(OAuth2Schema, { config: { ...signIn, ...config } }));
  const filter = oauth2Registration.compile(
    { typeUrl: typeUrlOf(OAuth2Schema), form: "binary", bytes },
    {
      name: "sign-in",
      scope,
      isInbound: false,
      statPrefix: "gate",
      clusterNames: new Set(),
      secretSlots: new Set(),
      place: Place.root,
      problems,
    },
  );
  assert.deepEqual(problems.list.map(problemText), []);
  const { port } = app.address() as { readonly port: number };
  const proxy = await runProxy(t, {
    routes: { "/": forwardTo(handBuiltCluster("app", [port])) },
    filters: [filter!],
    clock,
  });
  const newBrowser = (): Browser => new Browser((path, headers) => visit(proxy.port, path, headers));
  const counter = (name: string): number =>
    scope.metrics.counter({ name: `envoy_http_${name}`, labels: { envoy_http_conn_manager_prefix: "gate" } }).value;
  return { browser: newBrowser(), newBrowser, endpoint, clock, log: proxy.log, setSecret, counter };
}

function visit(port: number, path: string, headers: Readonly<Record<string, string>>): Promise<Page> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, agent: false, headers: { host: "shop.test:81", ...headers } };
    const request = http.get(options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
    });
    request.on("error", reject);
  });
}

const seenByApp = ({ body }: Page): { readonly headers: Readonly<Record<string, string>> } =>
  JSON.parse(body) as { readonly headers: Readonly<Record<string, string>> };

test("from the first page to the last: sign-in, the page, sign-out", async (t) => {
  const { browser, endpoint, log, counter } = await stage(t);
  const first = await browser.get("/account?a=1%20b", { authorization: "Bearer forged" });
  assert.equal(first.status, 302);
  const location = new URL(first.headers.location!);
  assert.equal(location.origin + location.pathname, "https://issuer.test/authorize");
  const { state, code_challenge: challenge, ...rest } = Object.fromEntries(location.searchParams);
  assert.deepEqual(rest, {
    tenant: "a",
    client_id: "shop",
    response_type: "code",
    scope: "orders.read",
    redirect_uri: "http://shop.test:81/signed-in",
    code_challenge_method: "S256",
  });
  for (const cookie of first.headers["set-cookie"]!) {
    assert.match(cookie, /^(OauthNonce|CodeVerifier)\.[0-9a-f]{32}=[^;]+;path=\/;Max-Age=600;secure;HttpOnly$/);
  }
  const back = await browser.callback(state!, "good");
  assert.equal(back.status, 302);
  assert.equal(back.headers.location, "http://shop.test:81/account?a=1%20b");
  const { form } = endpoint.seen[0]!;
  assert.equal(hash("sha256", form.get("code_verifier")!, "base64url"), challenge);
  assert.deepEqual(Object.fromEntries([...form].filter(([name]) => name !== "code_verifier")), {
    grant_type: "authorization_code",
    code: "good",
    redirect_uri: "http://shop.test:81/signed-in",
    client_id: "shop",
    client_secret: "client secret",
  });
  assert.deepEqual([...browser.cookies.keys()], ["OauthHMAC", "OauthExpires", "BearerToken", "RefreshToken"]);
  assert.doesNotMatch([...browser.cookies.values()].join(" "), /access-by|again/);
  browser.cookies.set("theme", "dark");
  const page = await browser.get("/account", { authorization: "Bearer forged" });
  assert.equal(page.status, 200);
  const { headers } = seenByApp(page);
  assert.equal(headers["authorization"], "Bearer access-by-good");
  assert.equal(headers["cookie"], "theme=dark");
  const out = await browser.get("/sign-out");
  assert.equal(out.headers.location, "http://shop.test:81/");
  assert.deepEqual([...browser.cookies.keys()], ["theme"]);
  assert.equal((await browser.get("/account")).status, 302);
  assert.deepEqual(log, [
    "302 - oauth.missing_credentials",
    "302 - oauth.logged_in",
    "200 - via_upstream",
    "302 - oauth.sign_out",
    "302 - oauth.missing_credentials",
  ]);
  assert.equal(counter("oauth_unauthorized_rq"), 2);
  assert.equal(counter("oauth_success"), 2);
});

interface Attack {
  readonly name: string;
  readonly config?: object;
  readonly act: (stage: Stage) => Promise<Page>;
  readonly status?: number;
  readonly details: string;
}

const refused = (what: string, config: object = {}, details = what): Attack => ({
  name: `a token endpoint that answers ${what}`,
  config,
  act: ({ browser }) => browser.signIn("/", what),
  details,
});

const attacks: readonly Attack[] = [
  refused("refused", {}, "Failed_to_get_access_token:_response_code:_400"),
  refused("garbage", {}, "Failed_to_parse_oauth_response_body"),
  refused("nothing", {}, "No_access_token_found_in_the_token_exchange_response"),
  refused("newline", {}, "No_access_token_found_in_the_token_exchange_response"),
  refused("endless", {}, "No_default_or_explicit_access_token_expiration_found_in_the_token_exchange_response"),
  refused("huge", {}, "The_tokens_do_not_fit_into_cookies"),
  refused("othernonce", openId, "The_ID_token_has_another_nonce"),
  refused("otherclient", openId, "The_ID_token_is_for_another_client"),
  refused("expired", openId, "The_ID_token_has_expired"),
  {
    name: "another browser's sign-in",
    act: async ({ browser, newBrowser }) => {
      const attacker = await newBrowser().startSignIn("/");
      await browser.startSignIn("/");
      return browser.callback(attacker.get("state")!, "good");
    },
    details: "CSRF_token_validation_failed",
  },
  {
    name: "a forged CSRF token in cookie and state",
    act: async ({ browser }) => {
      browser.cookies.set("OauthNonce.abc", "abc.forged");
      const state = { url: "http://shop.test:81/", csrf_token: "abc.forged", flow_id: "abc" };
      return browser.callback(Buffer.from(JSON.stringify(state)).toString("base64url"), "good");
    },
    details: "CSRF_token_validation_failed",
  },
  {
    name: "a code a second time",
    act: async ({ browser }) => {
      const state = (await browser.startSignIn("/")).get("state")!;
      await browser.callback(state, "good");
      return browser.callback(state, "good");
    },
    details: "CSRF_token_validation_failed",
  },
  {
    name: "the state's page at another site",
    act: async ({ browser }) => {
      const state = (await browser.startSignIn("/")).get("state")!;
      const json = Buffer.from(state, "base64url").toString().replace("shop.test:81", "shop.test:81@evil.test");
      return browser.callback(Buffer.from(json).toString("base64url"), "good");
    },
    details: "State_url_host_is_not_in_the_allowed_redirect_domains",
  },
  {
    name: "the state's page is the callback itself",
    act: async ({ browser }) => {
      const state = (await browser.startSignIn("/")).get("state")!;
      const json = Buffer.from(state, "base64url").toString().replace(":81/", ":81/signed-in?x");
      return browser.callback(Buffer.from(json).toString("base64url"), "good");
    },
    details: "State_url_query_params_matches_the_redirect_path_matcher",
  },
  {
    // URL parsers drop line breaks, and a head would not: whoever writes their own state must not write the answer too.
    name: "the state's page with a line break in it",
    act: async ({ browser }) => {
      const state = (await browser.startSignIn("/")).get("state")!;
      const json = Buffer.from(state, "base64url")
        .toString()
        .replace(":81/", String.raw`:81/\r\nx-injected: 1`);
      return browser.callback(Buffer.from(json).toString("base64url"), "good");
    },
    details: "State_url_host_is_not_in_the_allowed_redirect_domains",
  },
  {
    name: "no state",
    act: ({ browser }) => browser.get("/signed-in?code=good"),
    details: "Code_or_state_query_param_does_not_exist",
  },
  {
    name: "a state that is none",
    act: ({ browser }) => browser.callback("nonsense", "good"),
    details: "State_query_param_is_not_a_valid_JSON",
  },
  {
    name: "the user refused",
    act: async ({ browser }) => {
      const state = (await browser.startSignIn("/")).get("state")!;
      return browser.get(`/signed-in?error=access_denied&error_description=x&state=${state}`);
    },
    details: "OAuth_server_returned_an_error:_access_denied",
  },
  {
    name: "an error with a strange name",
    act: ({ browser }) => browser.get(`/signed-in?error=${encodeURIComponent("<a>\n")}`),
    details: "OAuth_server_returned_an_error:_",
  },
  {
    name: "no code verifier",
    act: async ({ browser }) => {
      const state = (await browser.startSignIn("/")).get("state")!;
      for (const name of browser.cookies.keys()) if (name.startsWith("Code")) browser.cookies.delete(name);
      return browser.callback(state, "good");
    },
    details: "Code_verifier_cookie_is_missing_in_the_request",
  },
  {
    name: "another's code verifier",
    act: async ({ browser, newBrowser }) => {
      const other = newBrowser();
      await other.startSignIn("/");
      const state = (await browser.startSignIn("/")).get("state")!;
      const stolen = [...other.cookies].find(([name]) => name.startsWith("Code"))![1];
      for (const name of browser.cookies.keys()) if (name.startsWith("Code")) browser.cookies.set(name, stolen);
      return browser.callback(state, "good");
    },
    details: "Failed_to_decrypt_code_verifier",
  },
  {
    name: "a script that cannot follow to another site",
    act: ({ browser }) => browser.get("/data", { "x-requested-with": "XMLHttpRequest" }),
    details: "Unauthorized,_and_redirecting_to_OAuth_server_is_not_allowed:_not_signed_in",
  },
];
for (const { name, config, act, details } of attacks) {
  test(`${name}: 401`, async (t) => {
    const all = await stage(t, config);
    const page = await act(all);
    assert.equal(page.status, 401);
    assert.equal(page.body, "OAuth flow failed.");
    assert.equal(all.log.at(-1), `401 - ${details}`);
    assert.equal(all.counter("oauth_failure"), 1);
    assert.equal(all.browser.cookies.has("BearerToken"), name.includes("second"));
  });
}

const tampered: readonly { readonly name: string; readonly act: (stage: Stage) => void | Promise<void> }[] = [
  { name: "another expiry", act: ({ browser }) => void browser.cookies.set("OauthExpires", "99999999999") },
  {
    name: "a changed access token",
    act: ({ browser }) => {
      const token = browser.cookies.get("BearerToken")!;
      browser.cookies.set("BearerToken", (token.startsWith("A") ? "B" : "A") + token.slice(1));
    },
  },
  { name: "a plain access token", act: ({ browser }) => void browser.cookies.set("BearerToken", "access-by-good") },
  {
    name: "the refresh token in the access token's place",
    act: ({ browser }) => void browser.cookies.set("BearerToken", browser.cookies.get("RefreshToken")!),
  },
  { name: "no MAC", act: ({ browser }) => void browser.cookies.delete("OauthHMAC") },
  { name: "a huge cookie", act: ({ browser }) => void browser.cookies.set("BearerToken", "A".repeat(40_000)) },
  {
    name: "cookies of two sessions",
    act: async ({ browser, newBrowser }) => {
      const other = newBrowser();
      await other.signIn("/", "other");
      browser.cookies.set("BearerToken", other.cookies.get("BearerToken")!);
    },
  },
  { name: "another cookie secret", act: ({ setSecret }) => setSecret("hmac", "changed") },
  { name: "a session at its end", act: ({ clock }) => clock.advance(301_000) },
];
for (const { name, act } of tampered) {
  test(`${name}: signs in again`, async (t) => {
    const all = await stage(t, { use_refresh_token: false });
    await all.browser.signIn("/");
    await act(all);
    const page = await all.browser.get("/account");
    assert.equal(page.status, 302);
    assert.match(page.headers.location!, /^https:\/\/issuer\.test\/authorize/);
  });
}

test("another host of the same gateway: a session is of one site", async (t) => {
  const { browser } = await stage(t, { use_refresh_token: false });
  await browser.signIn("/");
  assert.equal((await browser.get("/account", { host: "other.test" })).status, 302);
  assert.equal((await browser.get("/account")).status, 200);
});

test("a session at its end is refreshed, and the browser gets new cookies with the page", async (t) => {
  const { browser, clock, endpoint, counter } = await stage(t);
  await browser.signIn("/");
  clock.advance(301_000);
  const page = await browser.get("/account");
  assert.equal(page.status, 200);
  assert.equal(seenByApp(page).headers["authorization"], "Bearer access-by-again");
  assert.equal(seenByApp(page).headers["cookie"], undefined);
  const { refresh_token: refreshToken, ...form } = Object.fromEntries(endpoint.seen[1]!.form);
  assert.match(refreshToken!, /^again\./);
  assert.deepEqual(form, {
    grant_type: "refresh_token",
    client_id: "shop",
    client_secret: "client secret",
  });
  assert.equal((await browser.get("/account")).status, 200);
  assert.equal(endpoint.seen.length, 2);
  assert.equal(counter("oauth_refreshtoken_success"), 1);
});

test("requests that come together, or with cookies of before, cost one refresh", async (t) => {
  const { browser, newBrowser, clock, endpoint, log } = await stage(t);
  await browser.signIn("/");
  clock.advance(301_000);
  const old = newBrowser();
  for (const [name, value] of browser.cookies) old.cookies.set(name, value);
  let open = (): void => undefined;
  endpoint.gate = new Promise((resolve) => (open = resolve));
  const pages = [browser.get("/1"), browser.get("/2"), old.get("/3")];
  await until(
    () => endpoint.seen.length === 2,
    () => "the refresh",
  );
  open();
  for (const page of await Promise.all(pages)) assert.equal(page.status, 200);
  assert.equal((await old.get("/4")).status, 200);
  assert.equal(endpoint.seen.length, 2);
  assert.equal(log.filter((line) => line.startsWith("200")).length, 4);
});

test("a refused refresh leads to sign-in, and to 401 where that is no use", async (t) => {
  const { browser, clock, counter, log } = await stage(t);
  await browser.signIn("/", "doomed");
  clock.advance(301_000);
  assert.equal((await browser.get("/", { "x-requested-with": "XMLHttpRequest" })).status, 401);
  assert.match(log.at(-1)!, /Failed_to_refresh_the_access_token$/);
  const page = await browser.get("/");
  assert.match(page.headers.location!, /^https:\/\/issuer\.test\/authorize/);
  assert.equal(counter("oauth_refreshtoken_failure"), 2);
});

test("sign-out at an OpenID provider, with the ID token as a hint", async (t) => {
  const { browser, log } = await stage(t, openId);
  await browser.signIn("/", "openid");
  assert.equal(browser.cookies.has("IdToken"), true);
  const out = await browser.get("/sign-out");
  const location = new URL(out.headers.location!);
  assert.equal(location.origin + location.pathname, "https://issuer.test/logout");
  assert.equal(location.searchParams.get("client_id"), "shop");
  assert.equal(location.searchParams.get("post_logout_redirect_uri"), "http://shop.test:81/");
  assert.match(location.searchParams.get("id_token_hint")!, /^[\w-]+\.[\w-]+\.[\w-]*$/);
  assert.equal(browser.cookies.size, 0);
  assert.equal(log.at(-1), "302 - oauth.sign_out");
});

test("a second tab that was signed in meanwhile goes to its page without tokens of its own", async (t) => {
  const { browser, endpoint, log } = await stage(t);
  const one = await browser.startSignIn("/one");
  const two = await browser.startSignIn("/two");
  await browser.callback(one.get("state")!, "good");
  const page = await browser.callback(two.get("state")!, "good");
  assert.equal(page.headers.location, "http://shop.test:81/two");
  assert.equal(endpoint.seen.length, 1);
  assert.equal(log.at(-1), "302 - oauth.race_redirect");
});

test("a browser has at most eight sign-ins under way", async (t) => {
  const { browser } = await stage(t);
  for (let count = 0; count < 12; count += 1) await browser.startSignIn("/");
  assert.equal(browser.cookies.size, 16);
});

test("Basic authentication, a public client, and a request that is let through", async (t) => {
  const basic = await stage(t, { auth_type: "BASIC_AUTH" });
  await basic.browser.signIn("/");
  const [seen] = basic.endpoint.seen;
  assert.equal(seen!.authorization, `Basic ${Buffer.from("shop:client+secret").toString("base64")}`);
  assert.equal(seen!.form.has("client_id"), false);
  const open = await stage(t, { auth_type: "TLS_CLIENT_AUTH" });
  await open.browser.signIn("/");
  assert.equal(open.endpoint.seen[0]!.form.get("client_id"), "shop");
  assert.equal(open.endpoint.seen[0]!.form.has("client_secret"), false);
  const free = await stage(t, { pass_through_matcher: [{ name: "x-free", present_match: true }] });
  const page = await free.browser.get("/", { "x-free": "1", authorization: "Bearer own" });
  assert.equal(seenByApp(page).headers["authorization"], "Bearer own");
  assert.equal(free.counter("oauth_passthrough"), 1);
});

test("what may go on without sign-in says so, and nobody else can", async (t) => {
  const { browser } = await stage(t, { allow_failed_matcher: [{ name: "x-may", present_match: true }] });
  const page = await browser.get("/", {
    "x-may": "1",
    "x-envoy-oauth-failure-reason": "forged",
    cookie: "BearerToken=x",
  });
  const { headers } = seenByApp(page);
  assert.equal(headers["x-envoy-oauth-status"], "failed");
  assert.equal(headers["x-envoy-oauth-failure-reason"], "not signed in");
  assert.equal(headers["cookie"], undefined);
});

test("without its secrets the filter answers 503", async (t) => {
  const { browser, setSecret, log } = await stage(t);
  setSecret("hmac", undefined);
  const page = await browser.get("/");
  assert.equal(page.status, 503);
  assert.equal(page.body, "Service Unavailable");
  assert.deepEqual(log, ["503 - OAuth2_secrets_are_not_ready"]);
});

test("a token endpoint that goes away during the exchange", async (t) => {
  const { browser, endpoint, log } = await stage(t);
  const state = (await browser.startSignIn("/")).get("state")!;
  endpoint.gate = new Promise(() => undefined);
  const page = browser.get(`/signed-in?code=good&state=${state}`, { connection: "close" });
  await until(
    () => endpoint.seen.length === 1,
    () => "the exchange",
  );
  endpoint.close();
  assert.equal((await page).status, 401);
  assert.match(log.at(-1)!, /^401 - Failed_to_get_access_token_due_to_HTTP_request_failure:_upstream_reset/);
});
