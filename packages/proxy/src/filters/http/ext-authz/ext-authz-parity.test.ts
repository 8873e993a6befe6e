// External authorization on this proxy and on a stock Envoy: both ask the same authorizer the same questions and make
// the same of its answers.
import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { versions } from "../../../../../../tests/tools/http2-client.ts";
import { movedCounters, type ParityCall, type ParityPair, startParityPair } from "../../../testing/parity-pair.ts";

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Answers as the path behind `/check` asks, and keeps what it was asked. */
class HttpAuthorizerStage {
  readonly asked: Asked[] = [];
  readonly #server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = "", url = "", headersDistinct } = request;
    const headers = Object.fromEntries(Object.entries(headersDistinct).filter(([name]) => !ofTheProxy.has(name)));
    this.asked.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    answer(new URL(url, "http://a").pathname.split("/").at(-1)!, response);
  });

  async start(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Envoy's own client says these of itself. */
const ofTheProxy = new Set(["x-forwarded-for", "x-envoy-internal", "x-envoy-expected-rq-timeout-ms", "connection"]);

function answer(what: string, response: http.ServerResponse): void {
  const fields: [string, string][] = [
    ["x-user", "alice"],
    ["x-list", "b"],
    ["x-list", "c"],
    ["x-new", "1"],
    ["x-fresh", "1"],
    ["x-fresh", "2"],
    ["x-to-client", "one"],
    ["x-to-client", "two"],
    ["x-meta", "m"],
    ["www-authenticate", "Basic"],
    ["location", "http://elsewhere.test/"],
    ["content-type", "application/problem"],
    ["x-envoy-auth-headers-to-remove", "x-secret, Host, :path ,X-Other"],
  ];
  for (const [name, value] of fields) response.appendHeader(name, value);
  const status = { deny: 403, ask: 401, elsewhere: 302, teapot: 418, broken: 500, odd: 204, created: 201 }[what];
  if (what === "reset") response.destroy();
  else if (what === "late") response.on("close", () => undefined);
  else if (status === undefined) response.end("fine");
  else if (status === 204) response.writeHead(204).end();
  else response.writeHead(status).end(status === 302 ? "" : `no, ${what}`);
}

const list = (...names: readonly string[]): object => ({
  patterns: names.map((exact) => ({ exact, ignore_case: true })),
});

interface Settings {
  readonly [field: string]: unknown;
  readonly service?: object;
}

/** One answer comes late; the others must not, on a busy machine either. */
const authorizerTimeout = "2s";

const filter = ({ service = {}, ...rest }: Settings): object => ({
  name: "envoy.filters.http.ext_authz",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
    transport_api_version: "V3",
    http_service: {
      server_uri: { uri: "http://authorizer.test", cluster: "authorizer", timeout: authorizerTimeout },
      path_prefix: "/check",
      ...service,
    },
    ...rest,
  },
});

const perRoute = (config: object): object => ({
  typed_per_filter_config: {
    "envoy.filters.http.ext_authz": {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute",
      ...config,
    },
  },
});

const shadow = {
  name: "envoy.filters.http.rbac",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC",
    shadow_rules: {
      action: "DENY",
      policies: {
        "istio-ext-authz-x": {
          permissions: [{ url_path: { path: { prefix: "/asked" } } }],
          principals: [{ any: true }],
        },
      },
    },
    shadow_rules_stat_prefix: "istio_ext_authz_",
  },
};
const onlyAsked = {
  filter: "envoy.filters.http.rbac",
  path: [{ key: "istio_ext_authz_shadow_effective_policy_id" }],
  value: { string_match: { prefix: "istio-ext-authz" } },
};

const answersThrough = {
  allowed_upstream_headers: list("x-user", "x-new"),
  allowed_upstream_headers_to_append: list("x-list", "x-fresh"),
  allowed_client_headers: list("x-to-client"),
  allowed_client_headers_on_success: list("x-to-client"),
  dynamic_metadata_from_headers: list("x-meta"),
};

const body = { max_request_bytes: 8 };
const listeners = [
  { name: "plain", filters: [filter({})] },
  { name: "through", filters: [filter({ service: { authorization_response: answersThrough } })] },
  {
    name: "request",
    filters: [
      filter({
        allowed_headers: list("x-shown", "cookie", "content-length", ":scheme"),
        disallowed_headers: list("authorization"),
        service: {
          authorization_request: {
            headers_to_add: [
              { key: "x-added", value: "a%%b" },
              { key: "x-shown", value: "z" },
            ],
          },
        },
      }),
    ],
  },
  { name: "override", filters: [filter({ service: { path_prefix: "", path_override: "/check/deny" } })] },
  {
    name: "open",
    filters: [filter({ failure_mode_allow: true, failure_mode_allow_header_add: true, stat_prefix: "own" })],
  },
  { name: "status", filters: [filter({ status_on_error: { code: "ServiceUnavailable" } })] },
  { name: "whole", filters: [filter({ with_request_body: body })] },
  { name: "part", filters: [filter({ with_request_body: { ...body, allow_partial_message: true } })] },
  {
    name: "nobody",
    filters: [filter({ service: { server_uri: { uri: "http://a", cluster: "nobody", timeout: "1s" } } })],
  },
  { name: "shadow", filters: [shadow, filter({ filter_enabled_metadata: onlyAsked })] },
  {
    name: "disabled",
    filters: [
      filter({
        filter_enabled: { default_value: { numerator: 0 } },
        deny_at_disable: { default_value: true, runtime_key: "x" },
      }),
    ],
  },
  {
    name: "routes",
    filters: [filter({ with_request_body: { ...body, allow_partial_message: true } })],
    routes: [
      { match: { prefix: "/off" }, ...perRoute({ disabled: true }) },
      { match: { prefix: "/no-body" }, ...perRoute({ check_settings: { disable_request_body_buffering: true } }) },
      { match: { prefix: "/" } },
    ],
  },
];

const calls: readonly (ParityCall & { readonly name: string })[] = [
  ...["ok", "deny", "ask", "elsewhere", "teapot", "broken", "odd", "created", "reset"].flatMap((what) =>
    ["plain", "through"].map((listener) => ({
      name: what,
      listener,
      path: `/${what}?q=1`,
      headers: { "x-list": "a", "x-secret": "s", "x-other": "o", authorization: "Bearer t", cookie: "a=b" },
    })),
  ),
  { name: "HEAD, refused", listener: "plain", method: "HEAD", path: "/deny" },
  { name: "a time-out", listener: "plain", path: "/late" },
  ...["ok", "broken", "reset", "late", "deny"].map((what) => ({
    name: `fail open: ${what}`,
    listener: "open",
    path: `/${what}`,
  })),
  ...["broken", "reset", "deny"].map((what) => ({
    name: `status on error: ${what}`,
    listener: "status",
    path: `/${what}`,
  })),
  {
    name: "what the authorizer sees",
    listener: "request",
    path: "/ok",
    host: "shown.test",
    headers: { "x-shown": ["a", "b"], cookie: "c=d", authorization: "Bearer t", "x-hidden": "h" },
  },
  { name: "another path", listener: "override", path: "/ok" },
  { name: "a cluster without hosts", listener: "nobody", path: "/ok" },
  ...["whole", "part", "routes", "plain"].flatMap((listener) =>
    [["12345678"], ["1234"], ["1234", "5678"], ["123456789012"], ["1234", "5678", "9012"], [""]].map((sent) => ({
      name: `a body ${JSON.stringify(sent)}`,
      listener,
      method: "POST",
      path: "/ok",
      body: sent,
    })),
  ),
  { name: "a body that is not looked at", listener: "routes", method: "POST", path: "/no-body", body: ["12345678"] },
  { name: "a route without it", listener: "routes", path: "/off/deny" },
  { name: "enabled by metadata", listener: "shadow", path: "/asked/deny" },
  { name: "not enabled by metadata", listener: "shadow", path: "/free/deny" },
  { name: "denied where it is off", listener: "disabled", path: "/ok" },
];

const stage = new HttpAuthorizerStage();
let pair: ParityPair;

before(async () => {
  const port = await stage.start();
  pair = await startParityPair(listeners, "envoy.filters.http.ext_authz", {
    clusters: [
      { name: "authorizer", port },
      { name: "nobody", port: 1 },
    ],
  });
});

after(async () => {
  await pair?.stop();
  stage.close();
});

/** Whole, and longer than the authorizer is shown: one test below. */
const isTooLong = ({ listener, body: sent }: ParityCall): boolean =>
  listener === "whole" && sent?.length === 1 && sent[0]!.length > 8;

const cases = calls.flatMap((call) =>
  versions.filter((version) => version === "HTTP/1.1" || !isTooLong(call)).map((version) => ({ ...call, version })),
);
for (const { name, version, ...call } of cases) {
  test(`${call.listener}: ${name}, ${version}`, async () => {
    const on = async (side: "ours" | "envoys"): Promise<object> => {
      stage.asked.length = 0;
      const { status, headers, body: text } = await pair.ask(side, call, version);
      const { date: _date, server: _server, connection: _connection, "keep-alive": _alive, ...rest } = headers;
      delete rest["x-envoy-upstream-service-time"];
      return { status, headers: rest, body: text, asked: [...stage.asked] };
    };
    assert.deepEqual(await on("ours"), await on("envoys"));
  });
}

test("code details, metadata and counters are the same", async () => {
  const rows = [
    ...["ok", "deny", "broken"].map((what) => ({ listener: "through", path: `/${what}` })),
    { listener: "disabled", path: "/" },
    { listener: "whole", path: "/ok", method: "POST", body: ["12345678", "9"] },
  ];
  const { ours, envoys } = await pair.run(rows);
  const shown = (seen: typeof ours): unknown =>
    seen.map(({ status, details, metadata, overHttp2 }) => ({
      status,
      details,
      metadata: withoutTime(metadata),
      overHttp2: typeof overHttp2 === "string" ? overHttp2 : [overHttp2.status, overHttp2.details],
    }));
  assert.deepEqual(shown(ours), shown(envoys));
  const counters = await pair.counters(/ext_authz/);
  assert.deepEqual(movedCounters(counters.ours), movedCounters(counters.envoys));
});

test("this one refuses a body that its last frame makes too long; Envoy asks with its first bytes", async () => {
  const call: ParityCall = { listener: "whole", path: "/ok", method: "POST", body: ["123456789"] };
  stage.asked.length = 0;
  assert.equal((await pair.ask("ours", call, "HTTP/2")).status, 413);
  assert.equal(stage.asked.length, 0);
  assert.equal((await pair.ask("envoys", call, "HTTP/2")).status, 200);
  assert.equal(stage.asked.length, 1);
});

function withoutTime(metadata: unknown): unknown {
  if (typeof metadata !== "object" || metadata === null) return metadata;
  const { ext_authz_duration: _duration, ...rest } = metadata as Record<string, unknown>;
  return rest;
}
