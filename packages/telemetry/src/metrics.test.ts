// Metric handles, their bounds and the Prometheus text that they give.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expositionFormat } from "./exposition.ts";
import { MetricRegistry } from "./metrics.ts";

test("the same description gives the same handle, whatever the order of its labels", () => {
  const registry = new MetricRegistry();
  const first = registry.counter({ name: "requests", labels: { a: "1", b: "2" } });
  const second = registry.counter({ name: "requests", labels: { b: "2", a: "1" } });
  assert.equal(first, second);
});

test("text exposition escapes labels and accumulates buckets", () => {
  const registry = new MetricRegistry();
  registry.counter({ name: "b_total", help: 'a "help"\nline', labels: { path: 'x"\\\n' } }).add(3);
  const histogram = registry.histogram({ name: "a_ms" }, [1, 5]);
  [0.5, 1, 3, 9].forEach((value) => histogram.record(value));
  const text = registry.page(undefined).text;
  assert.match(
    text,
    /^a_ms_bucket\{le="1"\} 2\na_ms_bucket\{le="5"\} 3\na_ms_bucket\{le="\+Inf"\} 4\na_ms_sum 13.5\na_ms_count 4$/m,
  );
  assert.match(text, /^# HELP b_total a "help"\\nline$/m);
  assert.match(text, /^b_total\{path="x\\"\\\\\\n"\} 3$/m);
});

test("one series more than the limit is counted and not kept", () => {
  const registry = new MetricRegistry({ maxSeries: 2 });
  registry.counter({ name: "n", labels: { a: "1" } });
  registry.counter({ name: "n", labels: { a: "2" } }).increment();
  const text = registry.page(undefined).text;
  assert.doesNotMatch(text, /a="2"/);
  assert.match(text, /^tulle_metrics_dropped_series_total 1$/m);
});

test("removed series leave the text and make room", () => {
  const registry = new MetricRegistry();
  registry.gauge({ name: "g", labels: { cluster: "a" } }).set(1);
  registry.removeSeries((series) => series.labels["cluster"] === "a");
  assert.doesNotMatch(registry.page(undefined).text, /cluster/);
});

test("a family has one type", () => {
  const registry = new MetricRegistry();
  registry.counter({ name: "n" });
  assert.throws(() => registry.gauge({ name: "n" }), /n is a counter/);
});

const requests = (registry: MetricRegistry, labels: Record<string, string>) =>
  registry.counter({ name: "requests_total", labels, isLabelledByRequests: true });

test("values of a label, and then series of a family, beyond the limit are counted under other", () => {
  const told: string[] = [];
  const limits = { maxValuesOfLabel: 2, maxSeriesOfFamily: 5, onFolded: (family: string) => told.push(family) };
  const registry = new MetricRegistry(limits);
  for (let index = 0; index < 1000; index += 1) {
    requests(registry, { reporter: "source", path: `/${index}`, code: String(200 + (index % 2)) }).increment();
  }
  requests(registry, { reporter: "destination", path: "/0", code: "200" }).increment();
  const counted = [...registry.allSeries()].flatMap(({ name, labels, metric }) =>
    name === "requests_total" && "value" in metric ? [[...Object.values(labels), metric.value].join(" ")] : [],
  );
  assert.deepEqual(counted, [
    "source /0 200 1",
    "source /1 201 1",
    "source other 200 499",
    "source other 201 499",
    "destination /0 200 1",
  ]);
  requests(registry, { reporter: "destination", path: "/0", code: "201" }).add(7);
  assert.match(registry.page(undefined).text, /^requests_total\{reporter="other",path="other",code="other"\} 7$/m);
  assert.match(
    registry.page(undefined).text,
    /^tulle_metrics_folded_label_sets_total\{metric="requests_total"\} 999$/m,
  );
  assert.deepEqual(told, ["requests_total"]);
});

test("what who asks has folded itself is told and counted, too; a value that is called other is not", () => {
  const told: string[] = [];
  const registry = new MetricRegistry({ onFolded: (family) => told.push(family) });
  const named = (isAskerFull: boolean) =>
    registry.counter({ name: "n", labels: { app: "other" }, isLabelledByRequests: true, isAskerFull });
  named(false);
  assert.deepEqual(told, []);
  named(true);
  named(true);
  assert.deepEqual(told, ["n"]);
  assert.match(registry.page(undefined).text, /^tulle_metrics_folded_label_sets_total\{metric="n"\} 2$/m);
});

test("what nobody has added to for a whole rotation goes, makes room and begins at 0 when it comes back", () => {
  const registry = new MetricRegistry({ maxValuesOfLabel: 2 });
  const [idle, busy] = ["idle", "busy"].map((host) => requests(registry, { host }));
  idle!.add(5);
  busy!.add(5);
  const configured = registry.counter({ name: "configured", labels: { cluster: "a" } });
  registry.markIdle();
  busy!.increment();
  registry.dropIdle();
  const text = (): string => registry.page(undefined).text;
  assert.doesNotMatch(text(), /idle"/);
  assert.match(text(), /^requests_total\{host="busy"\} 6$/m);
  assert.match(text(), /^tulle_metrics_idle_series_total 1$/m);
  assert.equal(configured, registry.counter({ name: "configured", labels: { cluster: "a" } }));
  requests(registry, { host: "new" }).increment();
  assert.match(text(), /^requests_total\{host="new"\} 1$/m);
  requests(registry, { host: "idle" }).increment();
  assert.match(text(), /^requests_total\{host="other"\} 1$/m);
});

test("series that came between mark and drop stay", () => {
  const registry = new MetricRegistry();
  registry.markIdle();
  requests(registry, { host: "new" });
  registry.dropIdle();
  assert.match(registry.page(undefined).text, /host="new"/);
});

test("OpenMetrics: units, counters of Envoy that keep their names, exemplars, the end", () => {
  const registry = new MetricRegistry();
  registry.counter({ name: "envoy_cluster_upstream_cx_connect_fail" }).increment();
  registry.counter({ name: "sent_bytes_total", help: 'a "word"' }).exemplar = {
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    value: 1,
    atMs: 1_700_000_000_500,
  };
  registry.text({ name: "version" }).set("1");
  const histogram = registry.histogram({ name: "took_milliseconds" }, [1, 5]);
  histogram.record(3);
  histogram.addExemplar({ traceId: "a".repeat(32), value: 3, atMs: 1_700_000_001_000 });
  const lines = [...registry.pieces({ format: "openmetrics" })].join("").split("\n");
  assert.deepEqual(
    lines.filter((line) => !line.includes("tulle_")),
    [
      "# TYPE envoy_cluster_upstream_cx_connect_fail unknown",
      "envoy_cluster_upstream_cx_connect_fail 1",
      '# HELP sent_bytes a \\"word\\"',
      "# TYPE sent_bytes counter",
      "# UNIT sent_bytes bytes",
      'sent_bytes_total 0 # {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"} 1 1700000000.5',
      "# TYPE took_milliseconds histogram",
      "# UNIT took_milliseconds milliseconds",
      'took_milliseconds_bucket{le="1"} 0',
      `took_milliseconds_bucket{le="5"} 1 # {trace_id="${"a".repeat(32)}"} 3 1700000001`,
      'took_milliseconds_bucket{le="+Inf"} 1',
      "took_milliseconds_sum 3",
      "took_milliseconds_count 1",
      "# EOF",
      "",
    ],
  );
  assert.doesNotMatch(registry.page(undefined).text, /UNIT|EOF|trace_id/);
});

test("summaries and words, where they are asked for", () => {
  const registry = new MetricRegistry();
  registry.histogram({ name: "ms" }, [1, 5]).record(3);
  registry.text({ name: "word" }).set("a");
  const text = [...registry.pieces({ buckets: "summary", hasTexts: true })].join("");
  assert.match(text, /^# TYPE ms summary\nms\{quantile="0"\} 1\n/m);
  assert.match(text, /^ms\{quantile="1"\} 5\nms_sum 3\nms_count 1$/m);
  assert.match(text, /^# TYPE word gauge\nword\{text_value="a"\} 0$/m);
});

for (const [accept, format] of [
  [undefined, "prometheus"],
  ["*/*", "prometheus"],
  ["application/openmetrics-text; version=1.0.0", "openmetrics"],
  ["application/openmetrics-text;q=0", "prometheus"],
  ["application/openmetrics-text;q=0.2,text/plain;q=0.9", "prometheus"],
  // What Prometheus 2.42 and 3 send.
  [
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "openmetrics",
  ],
  [
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
    "openmetrics",
  ],
] as const) {
  test(`Accept: ${accept?.slice(0, 60)} gives ${format}`, () => assert.equal(expositionFormat(accept), format));
}

test("labels are shown under the names that are asked for", () => {
  const registry = new MetricRegistry({ shownLabels: new Map([["envoy_cluster_name", "cluster_name"]]) });
  registry.counter({ name: "n", labels: { envoy_cluster_name: "a", other: "b" } });
  assert.match(registry.page(undefined).text, /^n\{cluster_name="a",other="b"\} 0$/m);
});
