// Calls that this proxy and a stock Envoy make for a request, to authorizers over HTTP and gRPC: the context that they
// carry, and their spans.
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { extension, http2Options, router, staticCluster } from "../testing/envoy-json.ts";
import { type GrpcAnswer, GrpcAuthorizerStage } from "../testing/grpc-authorizer-stage.ts";
import {
  openTelemetry,
  startTracingStage,
  type TracedCall,
  type TracedListener,
  type TracedOutcome,
  type TracingStage,
  zipkin,
} from "../testing/tracing-stage.ts";

const grpcAnswers: Readonly<Record<string, GrpcAnswer>> = {
  "/denied": { status: { code: 7 } },
  "/unavailable": "unavailable",
  "/failed": "failed",
  "/reset": "reset",
  "/http": "http",
  "/garbage": "garbage",
  "/late": "late",
};

const authorizedBy = (config: object): object => ({
  http_filters: [
    {
      name: "envoy.filters.http.ext_authz",
      typed_config: { "@type": extension("filters.http.ext_authz.v3.ExtAuthz"), ...config },
    },
    router,
  ],
});
const overHttp = (pathPrefix: string, cluster = "app", timeout = "60s", headers = ["user-agent"]): object =>
  authorizedBy({
    http_service: {
      server_uri: { uri: "http://app.test", cluster, timeout },
      path_prefix: pathPrefix,
      authorization_request: { allowed_headers: { patterns: headers.map((exact) => ({ exact })) } },
    },
  });
const overGrpc = (cluster = "authorizer", timeout = "60s"): object =>
  authorizedBy({ grpc_service: { envoy_grpc: { cluster_name: cluster }, timeout } });

const otel = { provider: openTelemetry() };
const noRandom = { random_sampling: { value: 0 } };
const listener = (
  name: string,
  manager: object,
  tracing: object = otel,
  direction: TracedListener["direction"] = "INBOUND",
): TracedListener => ({ name, direction, tracing, manager });

const listeners: readonly TracedListener[] = [
  listener("http", overHttp("/status/200")),
  listener("http403", overHttp("/status/403")),
  listener("http404", overHttp("/status/404")),
  listener("http500", overHttp("/status/500")),
  listener("httpdead", overHttp("/status/200", "dead")),
  listener("httpcut", overHttp("/cut")),
  listener("httplate", overHttp("/late", "app", "1s")),
  listener("httpspawn", overHttp("/status/200"), { ...otel, spawn_upstream_span: true }),
  listener("httpout", overHttp("/status/200"), otel, "OUTBOUND"),
  listener("httpcontext", overHttp("/status/200", "app", "60s", ["user-agent", "traceparent", "tracestate"])),
  listener("httpnone", overHttp("/status/200"), { ...otel, ...noRandom }),
  listener("httpsilent", overHttp("/status/200"), { ...otel, no_context_propagation: true }),
  listener("httpverbose", overHttp("/status/200"), { ...otel, verbose: true }),
  listener("grpc", overGrpc()),
  listener("grpcspawn", overGrpc(), { ...otel, spawn_upstream_span: true }),
  listener("grpcout", overGrpc(), otel, "OUTBOUND"),
  listener("grpcdead", overGrpc("dead")),
  listener("grpclate", overGrpc("authorizer", "1s")),
  listener("grpcnone", overGrpc(), { ...otel, ...noRandom }),
  listener("zipkin", overGrpc(), { provider: zipkin({ trace_id_128bit: true }) }),
  listener("zipkinhttp", overHttp("/status/200"), { provider: zipkin({ trace_id_128bit: true }) }),
];

const parent = {
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  tracestate: "a=1",
};

const row = (
  listenerName: string,
  path = "/ok",
  spans = 2,
  headers: NonNullable<TracedCall["headers"]> = {},
): TracedCall => ({ listener: listenerName, path, spans, headers });

const rows: readonly TracedCall[] = [
  row("http"),
  row("http", "/ok", 2, parent),
  row("http403"),
  row("http404"),
  row("http500"),
  row("httpdead"),
  row("httpcut"),
  row("httplate"),
  row("httpspawn", "/ok", 3),
  row("httpout"),
  row("httpcontext", "/ok", 2, parent),
  row("httpnone", "/ok", 0),
  row("httpsilent"),
  row("httpverbose"),
  row("grpc"),
  row("grpc", "/ok", 2, parent),
  ...Object.keys(grpcAnswers)
    .filter((path) => path !== "/late")
    .map((path) => row("grpc", path)),
  row("grpcspawn", "/ok", 3),
  row("grpcout"),
  row("grpcdead"),
  row("grpclate", "/late"),
  row("grpcnone", "/ok", 0),
  row("zipkin"),
  row("zipkinhttp"),
];

suite("calls of both", () => {
  const authorizers = {
    ours: new GrpcAuthorizerStage((path) => grpcAnswers[path] ?? { status: {} }),
    envoys: new GrpcAuthorizerStage((path) => grpcAnswers[path] ?? { status: {} }),
  };
  let stage: TracingStage;
  let ours: readonly TracedOutcome[] = [];
  let envoys: readonly TracedOutcome[] = [];

  before(async () => {
    const ports = { ours: await authorizers.ours.start(), envoys: await authorizers.envoys.start() };
    stage = await startTracingStage(listeners, [{ match: { prefix: "/" }, route: { cluster: "app" } }], (side) => [
      staticCluster("authorizer", [ports[side]], { typed_extension_protocol_options: http2Options }),
    ]);
    ({ ours, envoys } = await stage.run(rows));
  });
  after(async () => {
    await stage.stop();
    authorizers.ours.close();
    authorizers.envoys.close();
  });

  for (const [index, { listener: at, path, headers }] of rows.entries()) {
    test(`${at} ${path} ${JSON.stringify(headers)}`, () => {
      assert.deepEqual(ours[index], envoys[index]);
    });
  }

  for (const side of ["ours", "envoys"] as const) {
    test(`${side}: an authorizer is told the span of its call, sampled or not`, () => {
      const { contexts } = authorizers[side];
      const isSampled = (context: string): boolean => context.endsWith("-01");
      const told = contexts.filter(isSampled).map((context) => context.split("-")[2]);
      const calls = stage.collectors[side].spans.filter(({ name }) => name.startsWith("async envoy.service.auth"));
      assert.ok(told.length > 0 && told.every((id) => calls.some(({ spanId }) => spanId === id)), contexts.join("\n"));
      assert.equal(contexts.length - told.length, 1);
    });
  }
});
