// Metric handles, their bounds and the Prometheus text that they give.
import assert from "node:assert/strict";
import { test } from "node:test";
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
  const text = registry.renderPrometheus();
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
  const text = registry.renderPrometheus();
  assert.doesNotMatch(text, /a="2"/);
  assert.match(text, /^tulle_metrics_dropped_series_total 1$/m);
});

test("removed series leave the text and make room", () => {
  const registry = new MetricRegistry();
  registry.gauge({ name: "g", labels: { cluster: "a" } }).set(1);
  registry.removeSeries((series) => series.labels["cluster"] === "a");
  assert.doesNotMatch(registry.renderPrometheus(), /cluster/);
});

test("a family has one type", () => {
  const registry = new MetricRegistry();
  registry.counter({ name: "n" });
  assert.throws(() => registry.gauge({ name: "n" }), /n is a counter/);
});
