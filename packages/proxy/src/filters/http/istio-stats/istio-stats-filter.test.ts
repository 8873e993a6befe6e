// The labels that requests are counted under, from where each side learns them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { MetricRegistry } from "@tulle/telemetry";
import { requestHead, streamInfo } from "../../../testing/from-configuration.ts";
import { finishedHandshake } from "../../../testing/finished-handshake.ts";
import type { HttpStream } from "../../../http/filter.ts";
import { responseFlags } from "../../../http/response-flags.ts";
import { clock, cluster, dataPath, filter, own, pass, peer, series } from "../../../testing/istio-stats-probe.ts";

const catalog = cluster(
  "outbound|80||catalog.shop.svc.cluster.local",
  { istio: { services: [{ host: "catalog.shop.svc.cluster.local", name: "catalog", namespace: "shop" }] } },
  { istio: { workload: "catalog-v1;shop;catalog;v1;local", labels: { app: "catalog", version: "v1" } } },
);

test("as source: own labels, the endpoint's, the cluster's service", () => {
  const metrics = new MetricRegistry();
  pass(filter(metrics, false), { cluster: catalog });
  assert.deepEqual(series(metrics)[0]?.labels, {
    reporter: "source",
    source_workload: "webapp",
    source_workload_namespace: "shop",
    source_principal: "unknown",
    source_app: "webapp",
    source_version: "v1",
    source_canonical_service: "webapp",
    source_canonical_revision: "v1",
    source_cluster: "local",
    destination_workload: "catalog-v1",
    destination_workload_namespace: "shop",
    destination_principal: "unknown",
    destination_app: "catalog",
    destination_version: "v1",
    destination_canonical_service: "catalog",
    destination_canonical_revision: "v1",
    destination_cluster: "local",
    destination_service: "catalog.shop.svc.cluster.local",
    destination_service_name: "catalog",
    destination_service_namespace: "shop",
    request_protocol: "http",
    response_code: "200",
    grpc_response_status: "",
    response_flags: "-",
    connection_security_policy: "unknown",
  });
});

test("requests of a sampled trace are exemplars of their count and of their time", () => {
  const metrics = new MetricRegistry();
  const hooks = filter(metrics, false);
  pass(hooks, { cluster: catalog, traceId: "a".repeat(32) });
  pass(hooks, { cluster: catalog, traceId: "b".repeat(32), isSampled: false });
  const text = [...metrics.pieces({ format: "openmetrics" })].join("");
  assert.match(text, /^istio_requests_total\{.*\} 2 # \{trace_id="a{32}"\} 1 [\d.]+$/m);
  assert.match(text, /^istio_request_duration_milliseconds_bucket\{.*le="10"\} 2 # \{trace_id="a{32}"\} 7 [\d.]+$/m);
  assert.equal(text.match(/trace_id/g)?.length, 2);
});

for (const [said, label] of [
  ["0", "0"],
  ["14", "14"],
  ["nonsense", "unknown"],
] as const) {
  test(`a gRPC status in the trailers: ${said}`, () => {
    const metrics = new MetricRegistry();
    const request = { headers: { "content-type": "application/grpc" } };
    pass(filter(metrics, false), { cluster: catalog, request, trailers: ["grpc-status", said] });
    const { labels } = series(metrics)[0]!;
    assert.deepEqual([labels["request_protocol"], labels["grpc_response_status"]], ["grpc", label]);
  });
}

const grpcRequest = { headers: { "content-type": "application/grpc" } };

function messages(metrics: MetricRegistry): readonly unknown[] {
  return ["istio_request_messages_total", "istio_response_messages_total"].map((name) =>
    series(metrics, name).map(({ metric }) => "value" in metric && metric.value),
  );
}

test("messages of gRPC, by who speaks to whom alone", () => {
  const metrics = new MetricRegistry();
  const hooks = filter(metrics, false);
  pass(hooks, { cluster: catalog, request: grpcRequest, messages: [1, 20], trailers: ["grpc-status", "0"] });
  pass(hooks, { cluster: catalog, request: grpcRequest, messages: [2, 0], code: 503 });
  pass(hooks, { cluster: catalog, messages: [5, 5] });
  assert.deepEqual(messages(metrics), [[3], [20]]);
  const { labels } = series(metrics, "istio_request_messages_total")[0]!;
  const whole = series(metrics)[0]!.labels;
  // As Istio's filter, which reports them before it knows how the call will end.
  const left = Object.keys(whole).filter((name) => !(name in labels));
  const outcome = ["request_protocol", "response_code", "grpc_response_status", "response_flags"];
  assert.deepEqual(left, [...outcome, "connection_security_policy"]);
});

test("messages of a stream that goes on are told every five seconds, and no others twice", () => {
  const metrics = new MetricRegistry();
  const hooks = filter(metrics, false);
  const request = requestHead(grpcRequest);
  const info = streamInfo(request);
  info.cluster = catalog;
  [info.upstreamHost] = catalog.hosts;
  const counts = { request: { count: 1 }, response: { count: 3 } };
  info.grpcMessages = counts;
  const stream = { info, request, dataPath } as unknown as HttpStream;
  hooks.onRequestHead?.(stream, false);
  clock.advance(4900);
  assert.deepEqual(messages(metrics), [[], []]);
  clock.advance(200);
  assert.deepEqual(messages(metrics), [[1], [3]]);
  counts.response.count = 10;
  clock.advance(5100);
  assert.deepEqual(messages(metrics), [[1], [10]]);
  counts.request.count = 2;
  hooks.onComplete?.(stream);
  clock.advance(20_000);
  assert.deepEqual(messages(metrics), [[2], [10]]);
});

test("as destination: the caller's labels by header, which goes no further", () => {
  const metrics = new MetricRegistry();
  const hooks = filter(metrics, true);
  const header = peer({ ...own, workload: "caller", principal: "spiffe://forged" });
  const rest = pass(hooks, { cluster: catalog, request: { headers: { a: "1", "x-envoy-peer-metadata": header } } });
  assert.deepEqual(rest, ["a", "1"]);
  const { labels } = series(metrics)[0]!;
  assert.equal(labels["reporter"], "destination");
  assert.equal(labels["source_workload"], "caller");
  assert.equal(labels["source_principal"], "unknown", "a claim is no identity");
  assert.equal(labels["destination_workload"], "webapp");
  assert.equal(labels["connection_security_policy"], "none");
});

test("as destination: a verified certificate names the caller, a merely shown one nobody", () => {
  const metrics = new MetricRegistry();
  const hooks = filter(metrics, true);
  const header = peer({ ...own, workload: "caller", principal: "spiffe://forged" });
  const request = { headers: { "x-envoy-peer-metadata": header } };
  const runs = [
    finishedHandshake("spiffe://web", "spiffe://catalog", true),
    finishedHandshake("spiffe://web", "spiffe://catalog", true),
    finishedHandshake("spiffe://other", "spiffe://catalog", true),
    finishedHandshake("spiffe://web", "spiffe://catalog", false),
    undefined,
  ];
  for (const tls of runs) pass(hooks, { cluster: catalog, request, ...(tls && { tls }) });
  const counted = series(metrics).map(({ labels, metric }) => [
    labels["source_workload"],
    labels["source_principal"],
    labels["destination_principal"],
    labels["connection_security_policy"],
    "value" in metric && metric.value,
  ]);
  assert.deepEqual(counted, [
    ["caller", "spiffe://web", "spiffe://catalog", "mutual_tls", 2],
    ["caller", "spiffe://other", "spiffe://catalog", "mutual_tls", 1],
    ["caller", "unknown", "spiffe://catalog", "none", 1],
    ["caller", "unknown", "unknown", "none", 1],
  ]);
});

test("as source: certificates of the connection to the host name both ends", () => {
  const metrics = new MetricRegistry();
  const hooks = filter(metrics, false);
  const runs = [
    finishedHandshake("spiffe://catalog", "spiffe://web", true),
    finishedHandshake("spiffe://catalog", "spiffe://web", true),
    finishedHandshake("spiffe://elsewhere", "spiffe://web", true),
    finishedHandshake("spiffe://catalog", "spiffe://web", false),
    undefined,
  ];
  for (const tls of runs) pass(hooks, { cluster: catalog, ...(tls && { upstreamTls: tls }) });
  const counted = series(metrics).map(({ labels, metric }) => [
    labels["source_principal"],
    labels["destination_principal"],
    labels["connection_security_policy"],
    "value" in metric && metric.value,
  ]);
  assert.deepEqual(counted, [
    ["spiffe://web", "spiffe://catalog", "unknown", 2],
    ["spiffe://web", "spiffe://elsewhere", "unknown", 1],
    ["spiffe://web", "unknown", "unknown", 1],
    ["unknown", "unknown", "unknown", 1],
  ]);
});

test("equal outcomes share a series, others have their own", () => {
  const metrics = new MetricRegistry();
  const hooks = filter(metrics, false);
  for (const run of [{}, {}, { code: 503, flags: responseFlags.UF.bit }, { code: 503, hasHost: false }]) {
    pass(hooks, { cluster: catalog, ...run });
  }
  const counted = series(metrics).map((one) => [
    one.labels["response_code"],
    one.labels["response_flags"],
    one.labels["destination_workload"],
    "value" in one.metric && one.metric.value,
  ]);
  assert.deepEqual(counted, [
    ["200", "-", "catalog-v1", 2],
    ["503", "UF", "catalog-v1", 1],
    ["503", "-", "unknown", 1],
  ]);
  for (const [name, sum] of [
    ["istio_request_duration_milliseconds", 14],
    ["istio_request_bytes", 20],
    ["istio_response_bytes", 40],
  ] as const) {
    const { metric } = series(metrics, name)[0]!;
    assert.ok("sum" in metric && metric.sum === sum, name);
  }
});

for (const { name, settings, clusterName, expected } of [
  {
    name: "the host header names an unknown service",
    settings: {},
    clusterName: "x",
    expected: ["host", "host", "unknown"],
  },
  {
    name: "unless that is switched off",
    settings: { disable_host_header_fallback: true },
    clusterName: "x",
    expected: ["unknown", "unknown", "unknown"],
  },
  {
    name: "pass-through has a name of its own",
    settings: {},
    clusterName: "PassthroughCluster",
    expected: ["host", "PassthroughCluster", "unknown"],
  },
]) {
  test(`service: ${name}`, () => {
    const metrics = new MetricRegistry();
    pass(filter(metrics, false, { settings }), { cluster: cluster(clusterName, {}) });
    const { labels } = series(metrics)[0]!;
    assert.deepEqual(
      ["destination_service", "destination_service_name", "destination_service_namespace"].map(
        (label) => labels[label],
      ),
      expected,
    );
  });
}

test("strangers cannot make up series without end, nor hide those of others", () => {
  const metrics = new MetricRegistry();
  const inbound = filter(metrics, true);
  const outbound = filter(metrics, false);
  const bare = cluster("bare", {});
  for (let index = 0; index < 3000; index += 1) {
    const header = peer({ workload: `w${index}` });
    pass(inbound, { cluster: catalog, request: { headers: { "x-envoy-peer-metadata": header } } });
    pass(outbound, { cluster: bare, request: { authority: `h${index}` } });
  }
  assert.ok(series(metrics).length < 1500, String(series(metrics).length));
  const total = series(metrics).reduce((sum, { metric }) => sum + ("value" in metric ? Number(metric.value) : 0), 0);
  assert.equal(total, 6000);
  const workloads = series(metrics).map(({ labels }) => labels["source_workload"]);
  assert.ok(workloads.includes("other"));
  assert.ok(series(metrics).some(({ labels }) => labels["destination_service"] === "other"));
});

for (const value of [
  "",
  "%%%",
  Buffer.from("[]").toString("base64"),
  Buffer.from('"x"').toString("base64"),
  "a".repeat(9000),
]) {
  test(`a header that nobody of us wrote: ${value.slice(0, 20)}`, () => {
    const metrics = new MetricRegistry();
    pass(filter(metrics, true), { cluster: catalog, request: { headers: { "x-envoy-peer-metadata": value } } });
    assert.equal(series(metrics)[0]?.labels["source_workload"], "unknown");
  });
}

test("a host outlives the listeners whose requests it has answered, and keeps none of their filters", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const metrics = new MetricRegistry();
  const former = Array.from({ length: 20 }, () => {
    const hooks = filter(metrics, false);
    pass(hooks, { cluster: catalog });
    return new WeakRef(hooks);
  });
  // What a turn has dereferenced lives until its end.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  assert.ok(former.filter((hooks) => hooks.deref() !== undefined).length <= 1);
});
