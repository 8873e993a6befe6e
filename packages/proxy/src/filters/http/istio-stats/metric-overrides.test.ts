// What `stats.PluginConfig` makes of the standard metrics, one case a field, and what happens to expressions that are
// none or have no value.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Histogram, type Labels, MetricRegistry } from "@tulle/telemetry";
import { Place, Problems } from "../../../fields/problems.ts";
import { ManualClock } from "../../../testing/manual-clock.ts";
import { cluster, filter, pass, peer, own, series } from "../../../testing/istio-stats-probe.ts";
import { readPluginConfig } from "./plugin-config.ts";

const catalog = cluster(
  "outbound|80||catalog.shop.svc.cluster.local",
  { istio: { services: [{ host: "catalog.shop.svc.cluster.local", name: "catalog", namespace: "shop" }] } },
  { istio: { workload: "catalog-v1;shop;catalog;v1;local", labels: { app: "catalog", version: "v1" } } },
);

/** Labels of the series of one request, by metric; undefined = there is none. */
function labelsAfter(settings: object, warnings: readonly string[] = []): (metric: string) => Labels | undefined {
  const metrics = new MetricRegistry();
  const request = { path: "/cart?a=b", authority: "shop.example", headers: { tenant: "gold" } };
  pass(filter(metrics, false, { settings, warnings }), { cluster: catalog, request, code: 404 });
  return (metric) => series(metrics, `istio_${metric}`)[0]?.labels;
}

const dimension = (expression: string) => ({ metrics: [{ dimensions: { tag: expression } }] });

for (const [expression, expected] of [
  ["request.method", "GET"],
  ["request.url_path", "/cart"],
  ["request.headers['tenant']", "gold"],
  ["request.headers['none']", "unknown"],
  ["request.headers", "unknown"],
  ["'literal'", "literal"],
  ["response.code >= 400 ? 'bad' : 'good'", "bad"],
  ["string(response.code / 100)", undefined],
  ["xds.cluster_name", "outbound|80||catalog.shop.svc.cluster.local"],
  ["xds.cluster_metadata.filter_metadata.istio.services[0].namespace", "shop"],
  ["node.metadata['LABELS']['team']", "blue"],
  ["upstream_peer.app", "catalog"],
  ["filter_state.upstream_peer.revision", "v1"],
  ["downstream_peer.workload", "unknown"],
  ["request.headers['tenant'].startsWith('g')", "true"],
] as const) {
  test(`a tag by ${expression}`, () => {
    const warning =
      'warning: metrics[0].dimensions["tag"]: the tag is unknown: the expression the operator / is not supported';
    const labels = labelsAfter(dimension(expression), expected === undefined ? [warning] : []);
    assert.equal(labels("requests_total")?.["tag"], expected ?? "unknown");
    assert.equal(labels("request_bytes")?.["tag"], expected ?? "unknown");
    assert.equal(labels("requests_total")?.["response_code"], "404");
  });
}

for (const [expression, expected] of [
  ["request.path", "/cart?a=b&access_token=redacted&c"],
  ["request.query", "a=b&access_token=redacted&c"],
  ["request.referer", "https://a.example/?code=redacted"],
  ["request.headers['referer']", "https://a.example/?code=redacted"],
  ["request.headers['authorization']", "redacted"],
  ['request.headers["Authorization"]', "redacted"],
  ["request.headers['cookie']", "unknown"],
  ["request.headers.authorization", "redacted"],
  ["request.headers.cookie", "unknown"],
  ["request.headers['authorization'].startsWith('Bearer ')", "true"],
  ["request.headers['authorization'] == 'Bearer secret' ? 'known' : 'unknown'", "known"],
] as const) {
  test(`no secret in a tag by ${expression}`, () => {
    const metrics = new MetricRegistry();
    const headers = { referer: "https://a.example/?code=secret", authorization: "Bearer secret" };
    const request = { path: "/cart?a=b&access_token=secret&c", authority: "shop.example", headers };
    pass(filter(metrics, false, { settings: dimension(expression), warnings: [] }), { cluster: catalog, request });
    assert.equal(series(metrics, "istio_requests_total")[0]?.labels["tag"], expected);
  });
}

for (const [name, tenant, expected] of [
  ["UTF-8", "gr\xc3\xbc\xc3\x9f", "grüß"],
  ["bytes that are no UTF-8", "a\xffb", "aÿb"],
  ["60,000 characters", "x".repeat(60_000), "x".repeat(256)],
  ["a character on the border", `x${"\xc3\xbc".repeat(200)}`, `x${"ü".repeat(127)}`],
] as const) {
  test(`a tag by a header of ${name}`, () => {
    const metrics = new MetricRegistry();
    const settings = dimension("request.headers['tenant']");
    const request = { path: "/", authority: "shop.example", headers: { tenant } };
    pass(filter(metrics, false, { settings, warnings: [] }), { cluster: catalog, request });
    assert.equal(series(metrics, "istio_requests_total")[0]?.labels["tag"], expected);
  });
}

test("of one metric alone; a standard tag gets another value; others are taken away", () => {
  const labels = labelsAfter({
    metrics: [
      { name: "requests_total", dimensions: { request_host: "request.host", destination_service: "'one'" } },
      { name: "request_bytes", tags_to_remove: ["response_flags", "source_principal"] },
    ],
  });
  assert.equal(labels("requests_total")?.["request_host"], "shop.example");
  assert.equal(labels("requests_total")?.["destination_service"], "one");
  assert.equal(labels("response_bytes")?.["request_host"], undefined);
  assert.equal(labels("requests_total")?.["response_flags"], "-");
  assert.ok(!("response_flags" in labels("request_bytes")!) && !("source_principal" in labels("request_bytes")!));
});

test("a metric that is dropped, and camelCase", () => {
  const labels = labelsAfter({ metrics: [{ name: "response_bytes", drop: true }], tcpReportingDuration: "15s" });
  assert.equal(labels("response_bytes"), undefined);
  assert.notEqual(labels("request_bytes"), undefined);
});

test("an override that holds for some requests", () => {
  const metrics = new MetricRegistry();
  const settings = {
    metrics: [
      { match: "request.url_path == '/health'", drop: true },
      { match: "bogus.a", dimensions: { a: "'b'" } },
    ],
  };
  const warnings = ["warning: metrics[1].match: it never holds: the expression the attribute bogus.a is not supported"];
  const hooks = filter(metrics, false, { settings, warnings });
  for (const path of ["/health", "/a", "/health"]) pass(hooks, { cluster: catalog, request: { path } });
  const counted = series(metrics).map(({ metric }) => "value" in metric && metric.value);
  assert.deepEqual(counted, [1]);
});

test("metrics of one's own: a counter, a gauge and a histogram, with tags", () => {
  const metrics = new MetricRegistry();
  const settings = {
    definitions: [
      { name: "body_bytes_total", value: "request.size" },
      { name: "last_code", value: "response.code", type: "GAUGE" },
      { name: "sizes", value: "response.size", type: "HISTOGRAM" },
      { name: "nothing", value: "request.bogus" },
      { name: "requests_total", value: "1" },
    ],
    metrics: [{ name: "body_bytes_total", dimensions: { method: "request.method" } }],
  };
  const warnings = [
    "warning: definitions[3].value: the metric is not kept: the expression the attribute request.bogus is not supported",
    "warning: definitions[4].name: ignored: requests_total is a standard metric",
  ];
  const hooks = filter(metrics, false, { settings, warnings });
  for (const code of [200, 404]) pass(hooks, { cluster: catalog, code });
  const of = (name: string) => series(metrics, name)[0]!;
  assert.deepEqual(of("istio_body_bytes_total").labels, { method: "GET" });
  const valueOf = (name: string) => series(metrics, name).map(({ metric }) => "value" in metric && metric.value);
  assert.deepEqual([valueOf("istio_body_bytes_total"), valueOf("istio_last_code")], [[20], [404]]);
  const sizes = of("istio_sizes").metric;
  assert.ok(sizes instanceof Histogram && sizes.count === 2 && sizes.sum === 40);
});

test("what is no field of the message, and values of another type", () => {
  labelsAfter({ bogus: 1 }, ["warning: bogus: ignored: stats.PluginConfig has no such field"]);
  labelsAfter({ rotation_interval: 5 }, ["error: rotation_interval: has a value of another type"]);
});

test("a waypoint reports the workloads that it stands before", () => {
  const metrics = new MetricRegistry();
  const request = { headers: { "x-envoy-peer-metadata": peer({ ...own, workload: "caller" }) } };
  pass(filter(metrics, true, { settings: { reporter: "SERVER_GATEWAY" } }), { cluster: catalog, request });
  const { labels } = series(metrics)[0]!;
  const { reporter, source_workload: source, destination_workload: destination } = labels;
  assert.deepEqual([reporter, source, destination], ["waypoint", "caller", "catalog-v1"]);
});

test("the message's own bytes say the same as a TypedStruct", () => {
  const entry = new BinaryWriter().tag(1, WireType.LengthDelimited).string("host");
  entry.tag(2, WireType.LengthDelimited).string("request.host");
  const metric = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(entry.finish());
  metric.tag(2, WireType.LengthDelimited).string("requests_total").tag(5, WireType.Varint).bool(true);
  const duration = new BinaryWriter().tag(1, WireType.Varint).int64(15).tag(2, WireType.Varint).int32(500_000_000);
  const bytes = new BinaryWriter().tag(6, WireType.Varint).bool(true);
  bytes.tag(7, WireType.LengthDelimited).bytes(duration.finish()).tag(8, WireType.LengthDelimited);
  bytes.bytes(metric.finish()).tag(10, WireType.Varint).int32(1).tag(99, WireType.Varint).int32(1);
  const typeUrl = "type.googleapis.com/stats.PluginConfig";
  const json = {
    disable_host_header_fallback: true,
    tcp_reporting_duration: "15.5s",
    metrics: [{ name: "requests_total", drop: true, dimensions: { host: "request.host" } }],
    reporter: "SERVER_GATEWAY",
  };
  const problems = new Problems();
  const read = [
    readPluginConfig({ typeUrl, form: "binary", bytes: bytes.finish() }, Place.root, problems),
    readPluginConfig({ typeUrl, form: "json", json }, Place.root, problems),
  ];
  assert.deepEqual(read[0], read[1]);
  assert.equal(read[0]?.tcpReportingDurationMs, 15_500);
  readPluginConfig({ typeUrl, form: "binary", bytes: Uint8Array.of(66, 200) }, Place.root, problems);
  assert.deepEqual(
    problems.list.map(({ message }) => message),
    ["the configuration is no stats.PluginConfig"],
  );
});

test("hosts, paths, tags, peers and codes that somebody makes up hold memory flat, and sums stay right", () => {
  const told: string[] = [];
  const metrics = new MetricRegistry({ onFolded: (family) => told.push(family) });
  const settings = { metrics: [{ dimensions: { path: "request.url_path", tenant: "request.headers['tenant']" } }] };
  const hooks = [filter(metrics, false, { settings }), filter(metrics, true, { settings })];
  const bare = cluster("bare", {});
  const requests = 10_000;
  for (let index = 0; index < requests; index += 1) {
    const request = {
      authority: `host-${index}`,
      path: `/${index}`,
      headers: { tenant: `t${index}`, "x-envoy-peer-metadata": peer({ workload: `w${index}` }) },
    };
    pass(hooks[index % 2]!, { cluster: bare, request, code: 100 + (index % 900) });
  }
  const counted = series(metrics);
  assert.ok(counted.length <= 4097, String(counted.length));
  const total = counted.reduce((sum, { metric }) => sum + ("value" in metric ? Number(metric.value) : 0), 0);
  assert.equal(total, requests);
  assert.equal(new Set(counted.map(({ labels }) => labels["path"])).size <= 1001, true);
  assert.equal(told.filter((family) => family === "istio_requests_total").length, 1);
});

test("idle series go at a rotation, those in use stay, and what comes back begins at 0", () => {
  const metrics = new MetricRegistry();
  const clock = new ManualClock();
  const settings = { rotation_interval: "100s", graceful_deletion_interval: "10s" };
  const hooks = filter(metrics, false, { settings, clock });
  const bare = cluster("bare", {});
  const ask = (authority: string) => pass(hooks, { cluster: bare, request: { authority } });
  const counts = () =>
    series(metrics).map(({ labels, metric }) => [labels["destination_service"], "value" in metric && metric.value]);
  for (const host of ["idle", "busy"]) ask(host);
  clock.advance(101_000);
  ask("busy");
  clock.advance(10_000);
  assert.deepEqual(counts(), [["busy", 2]]);
  for (const host of ["idle", "busy"]) ask(host);
  assert.deepEqual(counts(), [
    ["busy", 3],
    ["idle", 1],
  ]);
  assert.equal(series(metrics, "istio_build")[0]?.labels["tag"], "1.25.0");
});
