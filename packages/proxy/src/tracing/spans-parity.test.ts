// Spans of this proxy and of a stock Envoy from the same configuration, one by one: names, kinds, ids and parents,
// attributes, status, and what the host is told. Where ours differ on purpose, the row says so.
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { extension, http2Options, staticCluster } from "../testing/envoy-json.ts";
import {
  openTelemetry,
  openTelemetryOverHttp,
  startTracingStage,
  type TracedCall,
  type TracedListener,
  type TracedOutcome,
  type TracingStage,
  zipkin,
} from "../testing/tracing-stage.ts";

const customTags = [
  { tag: "literal", literal: { value: "word" } },
  { tag: "literal", literal: { value: "second of its name" } },
  { tag: "path", environment: { name: "TULLE_NOT_SET", default_value: "otherwise" } },
  { tag: "not.set", environment: { name: "TULLE_NOT_SET" } },
  { tag: "header", request_header: { name: "X-H" } },
  { tag: "header.default", request_header: { name: "x-none", default_value: "none" } },
  { tag: "route", metadata: { kind: { route: {} }, metadata_key: { key: "own", path: [{ key: "text" }] } } },
  { tag: "route.struct", metadata: { kind: { route: {} }, metadata_key: { key: "own", path: [{ key: "struct" }] } } },
  { tag: "route.number", metadata: { kind: { route: {} }, metadata_key: { key: "own", path: [{ key: "number" }] } } },
  {
    tag: "cluster",
    metadata: { kind: { cluster: {} }, metadata_key: { key: "own", path: [{ key: "x" }] }, default_value: "d" },
  },
  { tag: "value", value: "%REQ(x-h)%, %RESPONSE_CODE%" },
  { tag: "value.int", value: "%RESPONSE_CODE%", value_type: "INT" },
  { tag: "value.double", value: "1.5", value_type: "DOUBLE" },
  { tag: "value.bool", value: "true", value_type: "BOOL" },
  { tag: "value.not.int", value: "x", value_type: "INT" },
];
const noRandom = { random_sampling: { value: 0 } };
const noReason = {
  request_id_extension: {
    typed_config: { "@type": extension("request_id.uuid.v3.UuidRequestIdConfig"), pack_trace_reason: false },
  },
};
const otel = openTelemetry();
const overProtobuf = { collector_endpoint_version: "HTTP_PROTO" };
const listeners: readonly TracedListener[] = [
  { name: "in", direction: "INBOUND", tracing: { provider: otel } },
  { name: "out", direction: "OUTBOUND", tracing: { provider: otel } },
  { name: "spawn", direction: "INBOUND", tracing: { provider: otel, spawn_upstream_span: true } },
  { name: "spawnout", direction: "OUTBOUND", tracing: { provider: otel, spawn_upstream_span: true } },
  { name: "tags", direction: "INBOUND", tracing: { provider: otel, custom_tags: customTags, max_path_tag_length: 8 } },
  { name: "none", direction: "INBOUND", tracing: { provider: otel, ...noRandom } },
  { name: "nonepack", direction: "INBOUND", tracing: { provider: otel, ...noRandom }, manager: noReason },
  {
    name: "kept",
    direction: "INBOUND",
    tracing: { provider: otel, ...noRandom },
    manager: { preserve_external_request_id: true },
  },
  { name: "overall", direction: "INBOUND", tracing: { provider: otel, overall_sampling: { value: 0 } } },
  { name: "http", direction: "INBOUND", tracing: { provider: openTelemetryOverHttp } },
  { name: "silent", direction: "INBOUND", tracing: { provider: otel, no_context_propagation: true } },
  { name: "verbose", direction: "INBOUND", tracing: { provider: otel, verbose: true } },
  { name: "verbosespawn", direction: "INBOUND", tracing: { provider: otel, verbose: true, spawn_upstream_span: true } },
  { name: "zverbose", direction: "INBOUND", tracing: { provider: zipkin(), verbose: true } },
  {
    name: "named",
    direction: "OUTBOUND",
    tracing: {
      provider: otel,
      operation: "%REQ(:METHOD)% op",
      upstream_operation: "to %UPSTREAM_CLUSTER%",
      spawn_upstream_span: true,
    },
  },
  { name: "formatted", direction: "INBOUND", tracing: { provider: otel, operation: "%REQ(:PATH)%" } },
  { name: "zin", direction: "INBOUND", tracing: { provider: zipkin() } },
  { name: "zout", direction: "OUTBOUND", tracing: { provider: zipkin({ trace_id_128bit: true }) } },
  {
    name: "zspawn",
    direction: "INBOUND",
    tracing: { provider: zipkin({ trace_context_option: "USE_B3_WITH_W3C_PROPAGATION" }), spawn_upstream_span: true },
  },
  { name: "zproto", direction: "INBOUND", tracing: { provider: zipkin(overProtobuf), verbose: true } },
  {
    name: "zprotoout",
    direction: "OUTBOUND",
    tracing: { provider: zipkin({ ...overProtobuf, trace_id_128bit: true }), spawn_upstream_span: true },
  },
  { name: "znone", direction: "INBOUND", tracing: { provider: zipkin({ shared_span_context: false }), ...noRandom } },
];
const app = { cluster: "app" };
const routes = [
  {
    match: { path: "/tags" },
    route: app,
    metadata: { filter_metadata: { own: { text: "t", number: 5, struct: { a: 1 } } } },
  },
  {
    match: { path: "/routetags" },
    route: app,
    tracing: {
      custom_tags: [
        { tag: "literal", literal: { value: "of the route" } },
        { tag: "own", literal: { value: "own" } },
      ],
    },
  },
  { match: { path: "/routenone" }, route: app, tracing: { random_sampling: { numerator: 0 } } },
  { match: { path: "/op" }, route: app, decorator: { operation: "op" } },
  { match: { path: "/opquiet" }, route: app, decorator: { operation: "op", propagate: false } },
  {
    match: { path: "/retries" },
    route: { ...app, prefix_rewrite: "/status/503", retry_policy: { retry_on: "5xx", num_retries: 1 } },
  },
  { match: { path: "/once" }, route: { ...app, retry_policy: { retry_on: "5xx", num_retries: 2 } } },
  { match: { path: "/late" }, route: { ...app, timeout: "0.3s" } },
  {
    match: { path: "/latetry" },
    route: {
      ...app,
      prefix_rewrite: "/late",
      retry_policy: { retry_on: "5xx", num_retries: 1, per_try_timeout: "0.2s" },
    },
  },
  { match: { path: "/dead" }, route: { cluster: "dead" } },
  {
    match: { path: "/h2retries" },
    route: { cluster: "http2", prefix_rewrite: "/h2/503", retry_policy: { retry_on: "5xx", num_retries: 1 } },
  },
  { match: { prefix: "/h2/" }, route: { cluster: "http2" } },
  { match: { path: "/nowhere" }, route: { cluster: "nowhere" } },
  { match: { path: "/direct" }, direct_response: { status: 200, body: { inline_string: "d" } } },
  { match: { path: "/redirect" }, redirect: { host_redirect: "elsewhere.test" } },
  { match: { path: "/rewritten" }, route: { ...app, prefix_rewrite: "/ok" } },
  ...["/ok", "/status", "/grpc", "/decorated", "/cut"].map((prefix) => ({ match: { prefix }, route: app })),
];

const trace = (id: number): string => `0af7651916cd43dd8448eb21${String(id).padStart(8, "0")}`;
const span = (id: number): string => `b7ad6b71${String(id).padStart(8, "0")}`;
const parent = (id: number, flags = "01"): string => `00-${trace(id)}-${span(id)}-${flags}`;
const forced = { "x-envoy-force-trace": "1" };
const grpc = { "content-type": "application/grpc" };

interface Row extends TracedCall {
  readonly name: string;
  /** Ours, where it is not Envoy's. */
  readonly differs?: (envoys: TracedOutcome, ours: TracedOutcome) => unknown;
}

type Headers = NonNullable<TracedCall["headers"]>;

const row = (
  name: string,
  listener: string,
  path: string,
  spans = 1,
  headers: Headers = {},
  more: Partial<Row> = {},
): Row => ({
  name,
  listener,
  path,
  spans,
  headers,
  ...more,
});

/** Ours say more of the request's own span: which tries there were, and that time ran out. */
function withEvents(names: readonly (string | RegExp)[]): NonNullable<Row["differs"]> {
  return (envoys, ours) => {
    const [first, ...tries] = envoys.spans as readonly (object & { readonly events: readonly string[] })[];
    const events = (ours.spans[0] as { readonly events: readonly string[] }).events;
    assert.equal(events.length, names.length);
    for (const [index, name] of names.entries()) {
      if (typeof name === "string") assert.equal(events[index], name);
      else assert.match(events[index]!, name);
    }
    return { ...envoys, spans: [{ ...first, events }, ...tries] };
  };
}

/** Ours say that behind what Envoy says. */
function withMoreEvents(...names: readonly string[]): NonNullable<Row["differs"]> {
  return (envoys) => {
    const [first, ...tries] = envoys.spans as readonly (object & { readonly events: readonly string[] })[];
    return { ...envoys, spans: [{ ...first, events: [...first!.events, ...names] }, ...tries] };
  };
}

const rows: readonly Row[] = [
  row("a request", "in", "/ok?q=1"),
  row("a client's side", "out", "/ok"),
  row("over HTTP/2", "in", "/ok", 1, {}, { version: "HTTP/2" }),
  row("with spans of tries", "spawn", "/ok", 2),
  row("a client's side with spans of tries", "spawnout", "/ok", 2),
  row("over OTLP/HTTP", "http", "/ok"),
  row("a body", "in", "/ok", 1, {}, { method: "POST", body: ["hello"] }),
  row("retries", "in", "/retries", 1, {}, { differs: withEvents(["retry"]) }),
  row("retries with spans of tries", "spawn", "/retries", 3, {}, { differs: withEvents(["retry"]) }),
  row("a retry that succeeds", "spawnout", "/once", 3, {}, { differs: withEvents(["retry"]) }),
  row("a time-out", "in", "/late", 1, {}, { differs: withEvents(["timeout"]) }),
  row("a time-out with spans of tries", "spawn", "/late", 2, {}, { differs: withEvents(["timeout"]) }),
  row("time-outs of tries", "spawn", "/latetry", 3, {}, { differs: withEvents(["retry", "timeout"]) }),
  row(
    "Zipkin: retries",
    "zspawn",
    "/retries",
    3,
    {},
    { differs: withEvents([/^retry http.request.resend_count=1 /, "ss"]) },
  ),
  row("times of its parts", "verbose", "/ok"),
  row("times of a body's parts", "verbose", "/ok", 1, {}, { method: "POST", body: ["hello", "again"] }),
  row("times where no host was asked", "verbose", "/direct"),
  row("times where the host is not there", "verbose", "/dead"),
  row("times where the host cuts it", "verbose", "/cut"),
  row("times of a request that took too long", "verbose", "/late", 1, {}, { differs: withMoreEvents("timeout") }),
  row("times of tries", "verbosespawn", "/retries", 3, {}, { differs: withMoreEvents("retry") }),
  row(
    "times of a try that took too long",
    "verbosespawn",
    "/latetry",
    3,
    {},
    { differs: withMoreEvents("retry", "timeout") },
  ),
  row("times of the one try", "verbosespawn", "/ok", 2, {}, { method: "POST", body: ["hello"] }),
  row("Zipkin: times", "zverbose", "/ok"),
  row("an unusual method", "in", "/ok", 1, {}, { method: "PURGE" }),
  row("a client error", "in", "/status/404"),
  row("a client error on the client's side", "out", "/status/404"),
  row("a client error with spans of tries", "spawn", "/status/404", 2),
  row("a server error", "in", "/status/500"),
  row("a server error on the client's side", "out", "/status/503"),
  row("no route", "in", "/unknown"),
  row("no cluster", "spawn", "/nowhere"),
  row("a direct response", "in", "/direct"),
  row("a redirect", "in", "/redirect"),
  row("a path that is rewritten", "in", "/rewritten?a=b"),
  row("a host that is not there", "spawn", "/dead", 2),
  row("a host that cuts the connection", "spawn", "/cut", 2),
  row("a host that cuts it, without spans of tries", "in", "/cut"),
  row("a client's cluster and id", "in", "/ok", 1, {
    "x-envoy-downstream-service-cluster": "front",
    "x-client-trace-id": "c",
  }),
  row("custom tags", "tags", "/tags", 1, { "x-h": "h" }),
  row("custom tags of which some are not there", "tags", "/ok/long-path"),
  row("custom tags of a route", "tags", "/routetags"),
  row("no share by the route", "in", "/routenone", 0),
  row("no share", "none", "/ok", 0),
  row("no share, and forced", "none", "/ok", 1, forced),
  row("no share, and a client's id", "none", "/ok", 1, { "x-client-trace-id": "c" }),
  row("a decision in the id", "kept", "/ok", 1, { "x-request-id": "aaaaaaaa-aaaa-9aaa-aaaa-aaaaaaaaaaaa" }),
  row("overall nothing", "overall", "/ok", 0, forced),
  row("no reason in the id", "nonepack", "/ok", 1, forced),
  row("a decorator", "in", "/op"),
  row("a decorator on the client's side", "out", "/op"),
  row("a decorator that is not passed on", "in", "/opquiet"),
  row("a decorator that is not passed on by the client's side", "out", "/opquiet"),
  row("the client's name of it", "in", "/op", 1, { "x-envoy-decorator-operation": "client's" }),
  row("the host's name of it", "out", "/decorated"),
  row("the host's name of it, on the server's side", "in", "/decorated"),
  row("names by format", "named", "/ok", 2),
  row("names by format against a decorator", "named", "/op", 2),
  row("a sampled parent", "in", "/ok", 1, { traceparent: parent(1) }),
  row("a parent that is not sampled", "in", "/ok", 0, { traceparent: parent(2, "00") }),
  row("a parent that is not sampled, and forced", "in", "/ok", 0, { ...forced, traceparent: parent(3, "00") }),
  row("a sampled parent where nothing is sampled", "none", "/ok", 0, { traceparent: parent(4) }),
  row("a sampled parent, with spans of tries", "spawn", "/ok", 2, { traceparent: parent(5) }),
  row("a list of states", "in", "/ok", 1, { traceparent: parent(6), tracestate: "a=1,b=2", baggage: "k=v" }),
  row("two lists of states", "in", "/ok", 1, { traceparent: parent(7), tracestate: ["a=1", "b=2"] }),
  row("a later version", "in", "/ok", 1, { traceparent: `cc-${trace(8)}-${span(8)}-01` }),
  row("no context passed on", "silent", "/ok", 1, { traceparent: parent(9) }),
  row("B3 where OpenTelemetry is spoken", "in", "/ok", 1, { b3: `${trace(10)}-${span(10)}-1` }),
  ...[0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16].map((status) =>
    row(`gRPC status ${status}`, "in", `/grpc/${status}`, 1, grpc),
  ),
  ...[0, 5, 8, 14].map((status) =>
    row(`gRPC status ${status} on the client's side`, "out", `/grpc/${status}`, 1, grpc),
  ),
  row("names by format against a client's", "formatted", "/op", 1, { "x-envoy-decorator-operation": "client's" }),
  row("gRPC with spans of tries", "spawn", "/grpc/14", 2, { ...grpc, "grpc-timeout": "5S" }),

  row("a host of HTTP/2", "in", "/h2/200"),
  row("a host of HTTP/2, from the client's side", "out", "/h2/404"),
  row("a host of HTTP/2, over HTTP/2", "spawn", "/h2/200", 2, {}, { version: "HTTP/2" }),
  row("a host of HTTP/2, a body", "spawn", "/h2/200", 2, {}, { method: "POST", body: ["hello"] }),
  row("a host of HTTP/2, times", "verbosespawn", "/h2/200", 2, {}, { method: "POST", body: ["hello"] }),
  row("a host of HTTP/2, retries", "spawn", "/h2retries", 3, {}, { differs: withEvents(["retry"]) }),
  row("a host of HTTP/2 that resets the stream", "spawn", "/h2/reset", 2),
  ...[0, 5, 14].flatMap((status) => [
    row(`gRPC status ${status} in trailers`, "in", `/h2/trailers/${status}`, 1, grpc),
    row(`gRPC status ${status} in trailers, with spans of tries`, "spawn", `/h2/trailers/${status}`, 2, grpc),
  ]),
  row("Zipkin: a host of HTTP/2", "zspawn", "/h2/trailers/14", 2, grpc),

  row("Zipkin: a request", "zin", "/ok"),
  row("Zipkin: a client's side", "zout", "/ok"),
  row("Zipkin: with spans of tries", "zspawn", "/ok", 2),
  row("Zipkin: a server error", "zin", "/status/503"),
  row("Zipkin: a decorator", "zin", "/op"),
  row("Zipkin: one header", "zin", "/ok", 1, { b3: `${trace(20)}-${span(20)}-1-${span(21)}` }),
  row("Zipkin: one header without a decision", "zin", "/ok", 1, { b3: `${trace(22)}-${span(22)}` }),
  row("Zipkin: one header, not sampled", "zin", "/ok", 0, { b3: `${trace(23)}-${span(23)}-0` }),
  row("Zipkin: one header, debug", "zin", "/ok", 1, { b3: `${trace(24)}-${span(24)}-d` }),
  row("Zipkin: a decision alone", "zin", "/ok", 0, { b3: "0" }),
  row("Zipkin: several headers", "zin", "/ok", 1, {
    "x-b3-traceid": trace(25),
    "x-b3-spanid": span(25),
    "x-b3-sampled": "1",
  }),
  row("Zipkin: several headers, with a parent", "zin", "/ok", 1, {
    "x-b3-traceid": trace(26),
    "x-b3-spanid": span(26),
    "x-b3-parentspanid": span(27),
    "x-b3-sampled": "true",
  }),
  row("Zipkin: several headers without a decision", "znone", "/ok", 0, {
    "x-b3-traceid": trace(28),
    "x-b3-spanid": span(28),
  }),
  row("Zipkin: sampled by the client alone", "znone", "/ok", 1, {
    "x-b3-traceid": trace(29),
    "x-b3-spanid": span(29),
    "x-b3-sampled": "1",
  }),
  row("Zipkin: flags", "zin", "/ok", 1, { "x-b3-flags": "1" }),
  row("Zipkin: on the client's side", "zout", "/ok", 1, {
    "x-b3-traceid": trace(30),
    "x-b3-spanid": span(30),
    "x-b3-sampled": "1",
  }),
  row("Zipkin: W3C in", "zspawn", "/ok", 2, { traceparent: parent(31), tracestate: "a=1" }),
  row("Zipkin: protobuf", "zproto", "/ok"),
  row("Zipkin: protobuf, of a parent", "zproto", "/status/503", 1, { b3: `${trace(33)}-${span(33)}-1-${span(34)}` }),
  row("Zipkin: protobuf, a decorator", "zproto", "/op"),
  row("Zipkin: protobuf, from the client's side with spans of tries", "zprotoout", "/ok", 2),
  row("Zipkin: protobuf, names beyond ASCII", "zproto", "/ok?%C3%A9", 1, {
    "x-envoy-decorator-operation": "\u00c3\u00a9",
  }),
  row("Zipkin: one header, with spans of tries", "zspawn", "/ok", 2, { b3: `${trace(32)}-${span(32)}-1` }),
];

/** Answers by the path's word: a status, a gRPC status in trailers, or nothing at all. */
function startHttp2Host(): http2.Http2Server {
  const server = http2.createServer();
  server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    const [, , word = "", status = ""] = String(headers[":path"]).split("/");
    stream.on("error", () => undefined);
    stream.resume();
    stream.on("end", () => {
      if (word === "reset") return stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
      const isGrpc = word === "trailers";
      const head = isGrpc ? { ":status": 200, "content-type": "application/grpc" } : { ":status": Number(word) };
      stream.respond(head, { waitForTrailers: isGrpc });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status, "grpc-message": "words" }));
      stream.end("answer");
    });
  });
  return server;
}

suite("spans of both", () => {
  const http2Host = startHttp2Host();
  let stage: TracingStage;
  let ours: readonly TracedOutcome[] = [];
  let envoys: readonly TracedOutcome[] = [];

  before(async () => {
    await new Promise<void>((resolve) => {
      http2Host.listen(0, "127.0.0.1", resolve);
    });
    const { port } = http2Host.address() as AddressInfo;
    const http2Cluster = staticCluster("http2", [port], { typed_extension_protocol_options: http2Options });
    stage = await startTracingStage(listeners, routes, () => [http2Cluster]);
    ({ ours, envoys } = await stage.run(rows));
  });
  after(async () => {
    await stage.stop();
    http2Host.close();
  });

  for (const [index, { name, differs }] of rows.entries()) {
    test(name, () => {
      const expected = differs === undefined ? envoys[index] : differs(envoys[index]!, ours[index]!);
      assert.deepEqual(ours[index], expected);
    });
  }

  for (const side of ["ours", "envoys"] as const) {
    test(`spans of ${side} begin by the microsecond, those of tries after their requests'`, () => {
      const { spans } = stage.collectors[side];
      assert.ok(spans.some(({ startMs }) => startMs % 1 !== 0));
      const starts = new Map(spans.map(({ traceId, spanId, startMs }) => [`${traceId} ${spanId}`, startMs]));
      const ofTries = spans.filter(({ traceId, parentSpanId }) => starts.has(`${traceId} ${parentSpanId}`));
      assert.ok(ofTries.length > 0);
      for (const { traceId, parentSpanId, startMs, name } of ofTries)
        assert.ok(startMs >= starts.get(`${traceId} ${parentSpanId}`)!, name);
    });
  }
});
