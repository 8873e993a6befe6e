// The description that this server was begun with, line by line: each line that demands something, by its number and
// words, has a check against a real server process over HTTP. Where the RFCs demand more, `rules.test.ts` and
// `token-rules.test.ts` have it.
import assert from "node:assert/strict";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { createClient } from "./admin/clients.ts";
import { openDatabase } from "./store/open.ts";
import type { Browser, Visit } from "./testing/browser.ts";
import type { Installation, ServerProcess } from "./testing/server-processes.ts";
import {
  authorizeUrl,
  consentedBrowser,
  installation,
  nextCode,
  redemption,
  sharedIssuer,
} from "./testing/server-processes.ts";
import { answerOf, basic, testPassword, testRedirectUri, testSecret } from "./testing/test-server.ts";

let installed: Installation;
let server: ServerProcess;
let browser: Browser;

before(async () => {
  installed = await installation(undefined);
  server = await installed.startProcess();
  browser = await consentedBrowser(server, "openid offline_access");
});
after(() => installed[Symbol.asyncDispose]());

const scope = "openid offline_access";
const json = "application/json;charset=UTF-8";
const form = { "content-type": "application/x-www-form-urlencoded" };
const authorization = basic("app", testSecret);

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Readonly<Record<string, unknown>>;
}

async function post(
  fields: Readonly<Record<string, string>>,
  headers: Record<string, string> = { authorization },
): Promise<Answer> {
  const url = `http://127.0.0.1:${server.port}/token`;
  const response = await fetch(url, {
    method: "POST",
    headers: { ...form, ...headers },
    body: new URLSearchParams(fields).toString(),
  });
  return {
    status: response.status,
    headers: response.headers,
    json: (await response.json()) as Record<string, unknown>,
  };
}

async function tokens(more: Record<string, string> = {}): Promise<Answer> {
  return post({ ...redemption(await nextCode(browser, scope)), ...more });
}

/** The answer to an authorization request with some parameters changed, or left out where they are empty. */
async function ask(changes: Readonly<Record<string, string>>): Promise<Visit> {
  const url = new URL(authorizeUrl(scope));
  for (const [name, value] of Object.entries({ state: "a+b", ...changes })) {
    if (value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  return browser.open(url.href);
}

async function refused(changes: Readonly<Record<string, string>>, error: string): Promise<void> {
  const visit = await ask(changes);
  assert.equal(visit.status, 302);
  assert.ok(visit.location?.startsWith(`${testRedirectUri}?`));
  const answer = answerOf(visit);
  assert.equal(answer.get("error"), error);
  assert.equal(answer.get("state"), "a+b");
  assert.match(answer.get("error_description") ?? "", /./);
  assert.ok(URL.canParse(answer.get("error_uri") ?? ""));
  assert.equal(answer.has("code"), false, "no code with an error");
}

async function refusedToken(answer: Answer | Promise<Answer>, error: string): Promise<void> {
  const { status, headers, json: body } = await answer;
  assert.deepEqual([status, body["error"]], [400, error]);
  assert.equal(headers.get("content-type"), json);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(headers.get("pragma"), "no-cache");
  assert.equal(typeof body["error_description"], "string");
  assert.ok(URL.canParse(String(body["error_uri"])));
  assert.equal("access_token" in body, false);
}

async function granted(): Promise<void> {
  const visit = await ask({});
  assert.equal(visit.status, 302);
  assert.ok(visit.location?.startsWith(`${testRedirectUri}?`));
  assert.doesNotMatch(visit.location ?? "", /#/);
  const answer = answerOf(visit);
  assert.match(answer.get("code") ?? "", /./);
  assert.equal(answer.get("state"), "a+b");
}

async function successful(): Promise<void> {
  const { status, headers, json: body } = await tokens();
  assert.equal(status, 200);
  assert.equal(headers.get("content-type"), json);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(headers.get("pragma"), "no-cache");
  assert.equal(typeof body["access_token"], "string");
  assert.equal(body["token_type"], "bearer");
  assert.equal(body["expires_in"], 300);
  assert.equal(typeof body["refresh_token"], "string");
  assert.equal(body["scope"], scope);
}

async function withoutField(name: string, error: string): Promise<void> {
  const { [name]: _, ...rest } = redemption(await nextCode(browser, scope));
  await refusedToken(post(rest), error);
}

async function codeWorksOnce(): Promise<void> {
  const once = redemption(await nextCode(browser, scope));
  assert.equal((await post(once)).status, 200);
  await refusedToken(post(once), "invalid_grant");
}

async function ownerDenies(): Promise<void> {
  const own = server.browser();
  const page = await own.signIn(await own.open(authorizeUrl("openid profile")), "ann", testPassword);
  assert.match(page.body, /name="decision"/, "the owner is asked");
  assert.equal(answerOf(await own.decide(page, "deny")).get("error"), "access_denied");
}

function codeLifeIsShort(): void {
  assert.ok(installed.config.lifetimes.codeMs <= 10 * 60_000);
}

async function secretInBody(): Promise<void> {
  const fields = redemption(await nextCode(browser, scope));
  assert.equal((await post({ ...fields, client_id: "app", client_secret: testSecret }, {})).status, 200);
}

async function usesToken(): Promise<void> {
  const token = String((await tokens()).json["access_token"]);
  const url = `http://127.0.0.1:${server.port}/userinfo`;
  assert.equal((await fetch(url, { headers: { authorization: `Bearer ${token}` } })).status, 200);
}

async function clientWithoutTheGrant(): Promise<void> {
  const database = await openDatabase(installed.config);
  const client = { id: "job", grants: ["client_credentials"], redirectUris: [testRedirectUri], scope: "a" };
  const created = await createClient(database, { issuerIsHttp: true }, client);
  await database.close();
  assert.equal(created.problems, undefined);
  await refused({ client_id: "job" }, "unauthorized_client");
}

async function widerRefresh(): Promise<void> {
  const token = String((await tokens()).json["refresh_token"]);
  const fields = { grant_type: "refresh_token", refresh_token: token, scope: "openid profile" };
  await refusedToken(post(fields), "invalid_scope");
}

type Line = readonly [line: number, words: string, check: () => void | Promise<void>];

const page = async (changes: Readonly<Record<string, string>>): Promise<void> => {
  const visit = await ask(changes);
  assert.deepEqual([visit.status, visit.location], [400, undefined]);
};
const wrongClient = (): Promise<void> =>
  refusedToken(post(redemption("x"), { authorization: basic("app", "x".repeat(43)) }), "invalid_client");
const otherScope = async (): Promise<void> => {
  assert.equal((await tokens()).json["scope"], scope);
  assert.equal((await post({ ...redemption(await nextCode(browser, `${scope} unheard`)) })).json["scope"], scope);
};
const metadata = async (): Promise<void> => {
  const response = await fetch(`http://127.0.0.1:${server.port}/.well-known/openid-configuration`);
  const known = (await response.json()) as Record<string, unknown>;
  assert.deepEqual(known["response_types_supported"], ["code"]);
  assert.equal(known["authorization_endpoint"], `${sharedIssuer}/authorize`);
  assert.equal(known["token_endpoint"], `${sharedIssuer}/token`);
};

/** The server's own file, as another process opens it; it waits while the server writes. */
function databaseBeside(): DatabaseSync {
  return new DatabaseSync(path.join(installed.config.dataDir, "store.sqlite"), { timeout: 10_000 });
}

/** Someone moves a table away below the running server. */
async function tableIsMissing(): Promise<void> {
  using database = databaseBeside();
  database.exec("ALTER TABLE authorizations RENAME TO mislaid");
  try {
    await refused({}, "server_error");
  } finally {
    database.exec("ALTER TABLE mislaid RENAME TO authorizations");
  }
  assert.equal((await tokens()).status, 200, "and the server goes on");
}

/** Another process, such as a backup, holds the database for longer than the server waits. */
async function databaseIsTaken(): Promise<void> {
  using database = databaseBeside();
  database.exec("BEGIN IMMEDIATE");
  await refused({}, "temporarily_unavailable");
  database.exec("ROLLBACK");
  assert.equal((await tokens()).status, 200, "and the server goes on");
}

const lines: readonly Line[] = [
  [7, "implements the authorization code grant of OAuth 2.0 (RFC 6749)", successful],
  [9, "sends the resource owner's user agent to the authorization endpoint", granted],
  [10, "asks the owner whether the client may access", ownerDenies],
  [11, "redirects the user agent … with a one-time authorization code", codeWorksOnce],
  [12, "receives an access token, optionally with a refresh token", successful],
  [13, "uses the access token to request the owner's resources", usesToken],
  [
    14,
    "`response_type` is `code`, not `token`",
    () => refused({ response_type: "token" }, "unsupported_response_type"),
  ],
  [16, "Both endpoints are addressed relative to `{base_url}`", metadata],
  [20, "encoded as `application/x-www-form-urlencoded`", granted],
  [26, "client_id | string | required", () => page({ client_id: "" })],
  [
    27,
    "redirect_uri | string (URL) | optional",
    async () => assert.ok(answerOf(await ask({ redirect_uri: "" })).has("code")),
  ],
  [28, "response_type | string | required | Must be `code`", () => refused({ response_type: "" }, "invalid_request")],
  [29, "scope | string | optional", async () => assert.match((await ask({ scope: "" })).body, /name="decision"/)],
  [30, "state | echoed back unchanged", granted],
  [36, "code | string | required", granted],
  [37, "state | required when the request carried `state`", granted],
  [43, "error | string | required", () => refused({ response_type: "x" }, "unsupported_response_type")],
  [44, "error_description | string | optional", () => refused({ response_type: "x" }, "unsupported_response_type")],
  [45, "error_uri | string (URL) | optional", () => refused({ response_type: "x" }, "unsupported_response_type")],
  [46, "state | required when the request carried `state`", () => refused({ prompt: "x" }, "invalid_request")],
  [52, "grant_type | string | required", () => withoutField("grant_type", "invalid_request")],
  [53, "code | string | required", () => withoutField("code", "invalid_request")],
  [54, "redirect_uri | Must be repeated in the token request", () => withoutField("redirect_uri", "invalid_grant")],
  [55, "client_id | string | required", secretInBody],
  [56, "client_secret | only in the pre-final-specification", secretInBody],
  [62, "access_token | string | required", successful],
  [63, "token_type | almost always `bearer`", successful],
  [64, "expires_in | integer | optional", successful],
  [65, "refresh_token | string | optional", successful],
  [66, "scope | required when the granted scope differs", otherScope],
  [72, "error | string | required", wrongClient],
  [73, "error_description | string | optional", wrongClient],
  [74, "error_uri | string (URL) | optional", wrongClient],
  [82, "An authorization code is single-use", codeWorksOnce],
  [83, "An authorization code has a short lifetime", codeLifeIsShort],
  [84, "recommended upper bound of the code lifetime is 10 minutes", codeLifeIsShort],
  [92, "obtains the owner's consent", ownerDenies],
  [93, "Payload in: the query parameters", granted],
  [94, "answers `302 Found` with a `Location` header", granted],
  [95, "Denied or failed request: `302 Found`", () => refused({ response_type: "x" }, "unsupported_response_type")],
  [100, "exchanges an authorization code for an access token", successful],
  [101, "`Authorization: Basic <encoded_client_credentials>`", successful],
  [102, "Payload in: the form body of the token request", successful],
  [103, "Success: `200 OK`", successful],
  [104, "`Content-Type: application/json;charset=UTF-8`", successful],
  [105, "`Cache-Control: no-store`", successful],
  [106, "`Pragma: no-cache`", successful],
  [107, "Failure: `400 Bad Request` with the same three headers", wrongClient],
  [116, "HTTP `Authorization` header with the `Basic` scheme", successful],
  [117, "the `client_secret` parameter is added to the form body", secretInBody],
  [
    119,
    "Client authentication is recommended",
    () => refusedToken(post({ ...redemption("x"), client_id: "app" }, {}), "invalid_client"),
  ],
  [120, "The owner authenticates at the authorization endpoint", ownerDenies],
  [121, "Access tokens are used as bearer tokens", usesToken],
  [134, "invalid_request | The request data is malformed", () => refused({ prompt: "x" }, "invalid_request")],
  [135, "unauthorized_client | The client is not allowed to make this request", clientWithoutTheGrant],
  [136, "access_denied | The owner refused", ownerDenies],
  [137, "unsupported_response_type", () => refused({ response_type: "x" }, "unsupported_response_type")],
  [138, "server_error | An error inside the server prevented processing", tableIsMissing],
  [139, "temporarily_unavailable | The authorization server is temporarily unavailable", databaseIsTaken],
  [
    141,
    "No access token or code is delivered when the request is rejected",
    () => refused({ prompt: "x" }, "invalid_request"),
  ],
  [147, "invalid_request | The request data is malformed", () => withoutField("code", "invalid_request")],
  [148, "invalid_client | Client authentication failed", wrongClient],
  [149, "invalid_grant | The provided grant … is invalid", () => refusedToken(post(redemption("x")), "invalid_grant")],
  [
    150,
    "unauthorized_client | The client is not allowed",
    () => refusedToken(post({ grant_type: "client_credentials" }), "unauthorized_client"),
  ],
  [151, "unsupported_grant_type", () => refusedToken(post({ grant_type: "x" }), "unsupported_grant_type")],
  [152, "invalid_scope | The requested scope is invalid", widerRefresh],
  [160, "Authorization code lifetime | Short", codeLifeIsShort],
  [161, "Authorization code uses | 1", codeWorksOnce],
  [167, "The interface follows RFC 6749", metadata],
  [168, "the `Authorization` header is the final one", successful],
];

for (const [line, words, check] of lines) test(`line ${line}: ${words}`, async () => check());

// What the description says of others, or leaves open ("not shown", "not supported by many"), demands nothing.
const demanding = [
  [7, 7],
  [9, 14],
  [16, 16],
  [20, 20],
  [26, 30],
  [36, 37],
  [43, 46],
  [52, 56],
  [62, 66],
  [72, 74],
  [82, 84],
  [92, 95],
  [100, 107],
  [116, 117],
  [119, 121],
  [134, 139],
  [141, 141],
  [147, 152],
  [160, 161],
  [167, 168],
] as const;

test("each line that demands something has its check", () => {
  const numbers = demanding.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, at) => first + at));
  assert.deepEqual(
    lines.map(([line]) => line),
    numbers,
  );
});
