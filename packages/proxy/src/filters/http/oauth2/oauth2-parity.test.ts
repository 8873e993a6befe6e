// Sign-in on this proxy and on a stock Envoy with the same configuration: the same walks of a browser, by HTTP/1.1 and
// by HTTP/2, must come to the same statuses, addresses and cookies. What differs on purpose is taken off first, and
// stands in docs/differences-from-envoy.md.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { versions } from "../../../../../../tests/tools/http2-client.ts";
import { Browser, type Page, type TokenEndpoint, startTokenEndpoint } from "../../../testing/sign-in-stage.ts";
import { movedCounters, type ParityPair, startParityPair } from "../../../testing/parity-pair.ts";

const base = {
  token_endpoint: { cluster: "issuer", uri: "http://issuer.test/token", timeout: "5s" },
  authorization_endpoint: "https://issuer.test/authorize?tenant=a&scope=other",
  redirect_uri: "%REQ(x-forwarded-proto)%://%REQ(:authority)%/signed-in",
  redirect_path_matcher: { path: { exact: "/signed-in" } },
  signout_path: { path: { exact: "/sign-out" } },
  credentials: { client_id: "shop", token_secret: { name: "client" }, hmac_secret: { name: "hmac" } },
  auth_scopes: ["orders.read", "x y"],
  resources: ["https://api.test/", "urn:a"],
  forward_bearer_token: true,
  deny_redirect_matcher: [{ name: "x-requested-with", string_match: { exact: "XMLHttpRequest" } }],
};
const filter = (config: object): object => ({
  name: "sign-in",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.oauth2.v3.OAuth2",
    config: { ...base, ...config },
  },
});
const lax = { same_site: "LAX" };

const listeners: Readonly<Record<string, object>> = {
  plain: {},
  openid: { auth_scopes: ["openid"], end_session_endpoint: "https://issuer.test/logout" },
  basic: { auth_type: "BASIC_AUTH", use_refresh_token: false },
  public: {
    auth_type: "TLS_CLIENT_AUTH",
    credentials: { client_id: "a b", hmac_secret: { name: "hmac" }, cookie_domain: "main.test" },
  },
  named: {
    credentials: {
      ...base.credentials,
      cookie_names: {
        bearer_token: "__Host-A",
        oauth_hmac: "B",
        oauth_expires: "C",
        id_token: "D",
        refresh_token: "E",
        oauth_nonce: "__Secure-F",
        code_verifier: "G",
      },
    },
    cookie_configs: { bearer_token_cookie_config: lax, oauth_nonce_cookie_config: { ...lax, path: "/signed-in" } },
    default_expires_in: "60s",
    csrf_token_expires_in: "30s",
    code_verifier_token_expires_in: "40s",
  },
  passing: {
    pass_through_matcher: [
      { name: ":path", string_match: { safe_regex: { regex: "/account.*" } }, invert_match: true },
    ],
    allow_failed_matcher: [{ name: "x-may", present_match: true }],
  },
};

let pair: ParityPair;
let endpoint: TokenEndpoint;

before(async () => {
  endpoint = await startTokenEndpoint(() => Math.floor(Date.now() / 1000));
  const secret = (name: string, text: string): object => ({
    name,
    generic_secret: { secret: { inline_string: text } },
  });
  pair = await startParityPair(
    Object.entries(listeners).map(([name, config]) => ({ name, filters: [filter(config)] })),
    "none",
    {
      clusters: [{ name: "issuer", port: endpoint.port }],
      secrets: [secret("client", "a-secret"), secret("hmac", "another secret")],
    },
  );
});

after(async () => {
  await pair?.stop();
  endpoint?.close();
});

/** A page as far as both should agree: what is random, sealed or named otherwise on purpose becomes a word. */
function comparable({ status, headers, body }: Page): object {
  const { location } = headers;
  return {
    status,
    ...(location === undefined ? {} : { location: comparableLocation(location) }),
    cookies: (headers["set-cookie"] ?? [])
      .filter((line) => !isLegacy(line))
      .map(comparableCookie)
      .sort(byText),
    body: body.startsWith("{") ? seenByApp(body) : body,
  };
}

/** Envoy sets the cookies of a sign-in twice, once under the names of its older versions. */
function isLegacy(line: string): boolean {
  return /^(OauthNonce|CodeVerifier|__Secure-F|G)=/.test(line);
}

function comparableCookie(line: string): string {
  return (
    line
      .replace(/^([^=.]+)\.[0-9a-f]+=/, "$1.FLOW=")
      .replace(/^([^=]+)=(?!deleted)[^;]*/, "$1=VALUE")
      .toLowerCase()
      // The ID token's own end, in whole seconds: a second may pass on the way.
      .replace(/^(idtoken=.*max-age=)(?:599|601)\b/, "$1600")
  );
}

function comparableLocation(text: string): object {
  const url = new URL(text);
  const parameters = [...url.searchParams]
    // Envoy sends no nonce.
    .filter(([name]) => name !== "nonce")
    .map(([name, value]) => {
      if (name === "state") {
        const state = JSON.parse(Buffer.from(value, "base64url").toString()) as Record<string, string>;
        return [name, Object.keys(state).sort(byText).join(), state["url"]];
      }
      if (name === "id_token_hint") return [name, "TOKEN"];
      return name === "code_challenge" ? [name, value.length] : [name, value];
    });
  return { page: url.origin + url.pathname, parameters: parameters.sort(byText) };
}

function seenByApp(body: string): object {
  const { url, headers } = JSON.parse(body) as { url: string; headers: Record<string, readonly string[]> };
  // Envoy leaves access and ID token in the Cookie header; here the application gets none of the session's cookies.
  const kept = (headers["cookie"]?.[0] ?? "").split("; ").filter((each) => each.startsWith("theme="));
  const { authorization, "x-envoy-oauth-status": failed } = headers;
  return { url: url.replace(/state=.*/, "state=STATE"), cookie: kept, authorization, failed };
}

/** A code names the nonce behind a dot, a refresh token its id. */
function comparableField(key: string, value: string): unknown {
  if (key === "code_verifier") return value.length;
  return key === "code" || key === "refresh_token" ? value.split(".")[0] : value;
}

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

type Walk = (browser: Browser) => Promise<readonly Page[]>;

const flowOf = (parameters: URLSearchParams): string => parameters.get("state")!;
const walks: readonly { readonly name: string; readonly listener: string; readonly walk: Walk }[] = [
  ...Object.keys(listeners).map((listener) => ({
    name: "asks, signs in, sees the page, signs out",
    listener,
    walk: async (browser: Browser) => {
      const first = await browser.get("/account?q=1&r=%20");
      if (first.status !== 302) return [first];
      const parameters = new URL(first.headers.location!).searchParams;
      const nonce = parameters.get("nonce") ?? "";
      const what = { named: "endless", openid: `openid.${nonce}` }[listener] ?? "good";
      const back = await browser.callback(flowOf(parameters), what);
      browser.cookies.set("theme", "dark");
      const page = await browser.get("/account", { authorization: "Bearer forged" });
      const out = await browser.get("/sign-out");
      return [first, back, page, out, await browser.get("/account")];
    },
  })),
  ...["refused", "garbage", "nothing", "endless"].map((what) => ({
    name: `a token endpoint that answers ${what}`,
    listener: "plain",
    walk: async (browser: Browser) => [await browser.signIn("/", what)],
  })),
  {
    name: "callbacks that nobody asked for",
    listener: "plain",
    walk: async (browser) => [
      await browser.get("/signed-in"),
      await browser.get("/signed-in?code=a"),
      await browser.get("/signed-in?error=access_denied"),
      await browser.callback("nonsense", "good"),
      await browser.callback(Buffer.from('{"url":"http://main.test/"}').toString("base64url"), "good"),
    ],
  },
  {
    name: "another browser's sign-in",
    listener: "plain",
    walk: async (browser) => {
      const state = flowOf(await browser.startSignIn("/"));
      browser.cookies.clear();
      return [await browser.callback(state, "good")];
    },
  },
  {
    name: "the user refuses",
    listener: "plain",
    walk: async (browser) => {
      const state = flowOf(await browser.startSignIn("/"));
      return [await browser.get(`/signed-in?error=access_denied&state=${state}`)];
    },
  },
  {
    name: "a state that leads to the callback",
    listener: "plain",
    walk: async (browser) => {
      const state = flowOf(await browser.startSignIn("/"));
      const json = Buffer.from(state, "base64url").toString();
      const changed = json.replace("main.test/", "main.test/signed-in?");
      const other = flowOf(await browser.startSignIn("/"));
      await browser.callback(other, "good");
      return [await browser.callback(Buffer.from(changed).toString("base64url"), "good")];
    },
  },
  {
    name: "a callback that is none, by someone who is signed in",
    listener: "plain",
    walk: async (browser) => {
      await browser.signIn("/");
      return [await browser.callback("nonsense", "good")];
    },
  },
  {
    name: "a code a second time, and two tabs",
    listener: "plain",
    walk: async (browser) => {
      const one = flowOf(await browser.startSignIn("/one"));
      const two = flowOf(await browser.startSignIn("/two"));
      return [await browser.callback(one, "good"), await browser.callback(two, "good")];
    },
  },
  {
    name: "no redirect for scripts",
    listener: "plain",
    walk: async (browser) => [await browser.get("/data", { "x-requested-with": "XMLHttpRequest" })],
  },
  {
    name: "a changed cookie",
    listener: "basic",
    walk: async (browser) => {
      await browser.signIn("/");
      browser.cookies.set("OauthExpires", "99999999999");
      return [await browser.get("/")];
    },
  },
  {
    name: "a session that is over is refreshed",
    listener: "plain",
    walk: async (browser) => {
      await browser.signIn("/");
      browser.cookies.delete("OauthExpires");
      browser.cookies.delete("OauthHMAC");
      browser.cookies.delete("BearerToken");
      return [await browser.get("/account"), await browser.get("/again")];
    },
  },
  {
    name: "a refused refresh",
    listener: "plain",
    walk: async (browser) => {
      await browser.signIn("/", "doomed");
      browser.cookies.delete("OauthExpires");
      const script = await browser.get("/", { "x-requested-with": "XMLHttpRequest" });
      return [script, await browser.get("/")];
    },
  },
  {
    name: "pages that are not the filter's, and those that may fail",
    listener: "passing",
    walk: async (browser) => [
      await browser.get("/free", { authorization: "Bearer own" }),
      await browser.get("/account", { "x-may": "1", authorization: "Bearer own", "x-envoy-oauth-status": "forged" }),
      await browser.get("/signed-in?code=a&state=b", { "x-may": "1" }),
    ],
  },
];

const cases = walks.flatMap((each) => versions.map((version) => ({ ...each, version })));
for (const { name, listener, walk, version } of cases) {
  test(`${listener}: ${name}, ${version}`, async () => {
    const on = async (side: "ours" | "envoys"): Promise<readonly object[]> => {
      endpoint.seen.length = 0;
      const pages = await walk(new Browser((path, headers) => pair.ask(side, { listener, path, headers }, version)));
      const calls = endpoint.seen.map(({ form, authorization }) => ({
        form: [...form].map(([key, value]) => [key, comparableField(key, value)]).sort(byText),
        authorization,
      }));
      return [...pages.map(comparable), ...calls];
    };
    assert.deepEqual(await on("ours"), await on("envoys"));
  });
}

test("the counters of both say the same", async () => {
  const { ours, envoys } = await pair.counters(/oauth(?!_legacy)/);
  assert.deepEqual(movedCounters(ours), movedCounters(envoys));
});
