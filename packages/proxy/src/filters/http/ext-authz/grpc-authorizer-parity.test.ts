// Authorizers that speak gRPC, on this proxy and on a stock Envoy: both describe requests alike and make the same of
// the answers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "@bufbuild/protobuf";
import { type GrpcAnswer, GrpcAuthorizerStage } from "../../../testing/grpc-authorizer-stage.ts";
import { movedCounters, type ParityCall, type ParityPair, startParityPair } from "../../../testing/parity-pair.ts";

const option = (key: string, value: string, rest: object = {}): JsonObject => ({ header: { key, value }, ...rest });

/** What the authorizer answers, by the last part of the path. */
const answers: Readonly<Record<string, GrpcAnswer>> = {
  ok: {},
  plain: { status: { code: 0 }, ok_response: {} },
  changes: {
    status: { code: 0 },
    ok_response: {
      headers: [
        option("x-user", "alice"),
        option("X-List", "b", { append: true }),
        option("x-list", "c", { append: true }),
        option("x-absent", "d", { append: true }),
        option("x-two", "1"),
        option("x-two", "2"),
        option("x-over", "new", { append: false }),
      ],
      headers_to_remove: ["x-secret", "host", ":path"],
      response_headers_to_add: [
        option("x-answer", "one", { append: true }),
        option("x-answer", "two", { append: true }),
        option("x-set", "a"),
        option("x-set", "b", { append: false }),
        option("x-if-absent", "c", { append_action: "ADD_IF_ABSENT" }),
        option("x-if-there", "d", { append_action: "OVERWRITE_IF_EXISTS" }),
      ],
      query_parameters_to_set: [
        { key: "q", value: "2" },
        { key: "new", value: "n" },
      ],
      query_parameters_to_remove: ["gone"],
    },
    dynamic_metadata: { user: "alice", list: [1, true, null] },
  },
  path: { ok_response: { headers: [option(":path", "/elsewhere"), option(":authority", "other.test")] } },
  deny: {
    status: { code: 7 },
    denied_response: {
      status: { code: "Unauthorized" },
      body: "who are you?",
      headers: [
        option("www-authenticate", "Basic"),
        option("x-two", "1", { append: true }),
        option("x-two", "2", { append: true }),
        option("content-type", "text/html"),
      ],
    },
    dynamic_metadata: { why: "unknown" },
  },
  bare: { status: { code: 7 } },
  "no-status": { status: { code: 16 }, denied_response: { body: "no" } },
  "denied-body": { status: { code: 0 }, denied_response: { body: "not denied" } },
  unavailable: "unavailable",
  failed: "failed",
  reset: "reset",
  http: "http",
  garbage: "garbage",
  late: "late",
};

const filter = (config: object = {}, service: object = {}): object => ({
  name: "envoy.filters.http.ext_authz",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
    transport_api_version: "V3",
    grpc_service: {
      envoy_grpc: { cluster_name: "authorizer", authority: "authorizer.test" },
      // One answer comes late; the others must not, on a busy machine either.
      timeout: "2s",
      ...service,
    },
    ...config,
  },
});

const contexts = {
  typed_per_filter_config: {
    "envoy.filters.http.ext_authz": {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute",
      check_settings: { context_extensions: { a: "b" } },
    },
  },
};
const patterns = { patterns: [{ prefix: "x-shown" }, { exact: ":method" }] };
const listeners = [
  { name: "plain", filters: [filter()] },
  { name: "open", filters: [filter({ failure_mode_allow: true })] },
  {
    name: "shown",
    filters: [filter({ allowed_headers: patterns, include_peer_certificate: true, include_tls_session: true })],
  },
  { name: "whole", filters: [filter({ with_request_body: { max_request_bytes: 8 } })] },
  {
    name: "part",
    filters: [
      filter({ with_request_body: { max_request_bytes: 8, allow_partial_message: true, pack_as_bytes: true } }),
    ],
  },
  { name: "ingests", filters: [filter({ enable_dynamic_metadata_ingestion: false })] },
  { name: "cuts", filters: [filter({ max_denied_response_body_bytes: 3 })] },
  {
    name: "routes",
    filters: [filter({ clear_route_cache: true })],
    routes: [
      { match: { path: "/elsewhere" } },
      { match: { prefix: "/context" }, ...contexts },
      { match: { prefix: "/" } },
    ],
  },
  { name: "nobody", filters: [filter({}, { envoy_grpc: { cluster_name: "nobody" } })] },
];

const headers = { "x-list": "a", "x-over": "old", "x-secret": "s", "x-shown-a": ["1", "2"], cookie: "a=b" };
const calls: readonly (ParityCall & { readonly name: string })[] = [
  ...Object.keys(answers).map((what) => ({
    name: what,
    listener: "plain",
    path: `/a/${what}?q=1&gone=x&r=%20&s`,
    headers,
  })),
  ...["late", "unavailable", "bare"].map((what) => ({
    name: `fail open: ${what}`,
    listener: "open",
    path: `/${what}`,
  })),
  { name: "some headers", listener: "shown", path: "/ok", headers },
  ...["whole", "part"].flatMap((listener) =>
    [["12345678"], ["1234"], ["123456789012"], ["\u00e9"]].map((body) => ({
      name: `body ${body.join()}`,
      listener,
      path: "/ok",
      method: "POST",
      body,
    })),
  ),
  { name: "a long refusal", listener: "cuts", path: "/deny" },
  { name: "context of a route", listener: "routes", path: "/context/ok" },
  { name: "another route", listener: "routes", path: "/context/path" },
  { name: "no host", listener: "nobody", path: "/ok" },
];

const stage = new GrpcAuthorizerStage((path) => answers[path.split("?")[0]!.split("/").at(-1)!] ?? {});
let pair: ParityPair;

before(async () => {
  const port = await stage.start();
  pair = await startParityPair(listeners, "envoy.filters.http.ext_authz", {
    clusters: [
      { name: "authorizer", port, isHttp2: true },
      { name: "nobody", port: 1, isHttp2: true },
    ],
  });
});

after(async () => {
  await pair?.stop();
  stage.close();
});

for (const { name, ...call } of calls) {
  test(`${call.listener}: ${name}`, async () => {
    const on = async (side: "ours" | "envoys"): Promise<object> => {
      stage.asked.length = 0;
      const answer = await pair.ask(side, call);
      const { date: _date, server: _server, connection: _connection, "keep-alive": _alive, ...rest } = answer.headers;
      delete rest["x-envoy-upstream-service-time"];
      delete rest["content-length"];
      return { status: answer.status, headers: rest, body: received(answer.body), asked: [...stage.asked] };
    };
    assert.deepEqual(await on("ours"), await on("envoys"));
  });
}

/**
 * What the back end got. Envoy sorts the parameters and writes them anew, where here the others stay as the client
 * wrote them.
 */
function received(body: string): unknown {
  if (!body.startsWith("{")) return body;
  const { url, ...rest } = JSON.parse(body) as { readonly url: string };
  const { pathname, searchParams } = new URL(url, "http://a");
  return { pathname, parameters: [...searchParams].sort(([a], [b]) => (a < b ? -1 : 1)), ...rest };
}

test("details, metadata and counters are the same", async () => {
  const rows = [
    ...["ok", "changes", "deny", "late"].map((what) => ({ listener: "plain", path: `/${what}` })),
    { listener: "ingests", path: "/changes" },
  ];
  const { ours, envoys } = await pair.run(rows);
  const shown = (seen: typeof ours): unknown =>
    seen.map(({ status, details, metadata, overHttp2 }) => {
      if (typeof metadata === "object") Reflect.deleteProperty(metadata as object, "ext_authz_duration");
      return { status, details, metadata, overHttp2: typeof overHttp2 === "object" && overHttp2.details };
    });
  assert.deepEqual(shown(ours), shown(envoys));
  const counters = await pair.counters(/ext_authz/);
  assert.deepEqual(movedCounters(counters.ours), movedCounters(counters.envoys));
});
