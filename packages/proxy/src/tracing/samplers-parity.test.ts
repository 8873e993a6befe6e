// Samplers and resource detectors of the OpenTelemetry tracer beside a stock Envoy's: which traces are written, what
// the next one is told, and what a span's resource says.
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { extension } from "../testing/envoy-json.ts";
import {
  openTelemetry,
  startTracingStage,
  type TracedCall,
  type TracedListener,
  type TracedOutcome,
  type TracingStage,
} from "../testing/tracing-stage.ts";

const sampler = (name: string, type: string, config: object): object => ({
  name: `envoy.tracers.opentelemetry.samplers.${name}`,
  typed_config: { "@type": extension(`tracers.opentelemetry.samplers.v3.${type}`), ...config },
});
const alwaysOn = sampler("always_on", "AlwaysOnSamplerConfig", {});
const ratio = (numerator: number, denominator: string): object =>
  sampler("trace_id_ratio_based", "TraceIdRatioBasedSamplerConfig", {
    sampling_percentage: { numerator, denominator },
  });
const parentBased = (wrapped: object): object =>
  sampler("parent_based", "ParentBasedSamplerConfig", { wrapped_sampler: wrapped });
const cel = (expression: object): object => sampler("cel", "CELSamplerConfig", { expression });

const name = (text: string): object => ({ ident_expr: { name: text } });
const select = (operand: object, field: string, isTest = false): object => ({
  select_expr: { operand, field, ...(isTest ? { test_only: true } : {}) },
});
const text = (value: string): object => ({ const_expr: { string_value: value } });
const call = (operator: string, ...args: readonly object[]): object => ({ call_expr: { function: operator, args } });
const path = select(name("request"), "path");
const header = (field: string): object => call("_[_]", select(name("request"), "headers"), text(field));
const isPath = (value: string): object => call("_==_", path, text(value));

const staticDetector = (attributes: object): object => ({
  name: "envoy.tracers.opentelemetry.resource_detectors.static_config",
  typed_config: {
    "@type": extension("tracers.opentelemetry.resource_detectors.v3.StaticConfigResourceDetectorConfig"),
    attributes,
  },
});

const noRandom = { random_sampling: { value: 0 } };
const listener = (named: string, provider: object, tracing: object = {}): TracedListener => ({
  name: named,
  direction: "INBOUND",
  tracing: { provider: openTelemetry(provider), ...tracing },
});
const sampled = (named: string, by: object, tracing: object = {}): TracedListener =>
  listener(named, { sampler: by }, tracing);

const expressions: Readonly<Record<string, object>> = {
  path: { cel_expr_parsed: { expr: isPath("/ok") } },
  checked: { cel_expr_checked: { expr: isPath("/ok") } },
  earlier: { parsed_expr: { expr: isPath("/ok") } },
  header: { cel_expr_parsed: { expr: call("_==_", header("x-h"), text("h")) } },
  has: { cel_expr_parsed: { expr: select(select(name("request"), "headers"), "x-h", true) } },
  and: {
    cel_expr_parsed: { expr: call("_&&_", isPath("/ok"), call("!_", call("@in", header("x-h"), list("a", "b")))) },
  },
  or: { cel_expr_parsed: { expr: call("_||_", isPath("/other"), call("_==_", header("x-h"), text("h"))) } },
  begins: {
    cel_expr_parsed: { expr: { call_expr: { target: path, function: "startsWith", args: [text("/o")] } } },
  },
  conditional: {
    cel_expr_parsed: {
      expr: call("_?_:_", isPath("/ok"), { const_expr: { bool_value: true } }, isPath("/status/404")),
    },
  },
  noboolean: { cel_expr_parsed: { expr: path } },
};

function list(...elements: readonly string[]): object {
  return { list_expr: { elements: elements.map(text) } };
}

const listeners: readonly TracedListener[] = [
  sampled("on", alwaysOn),
  sampled("onnone", alwaysOn, noRandom),
  sampled("none", ratio(0, "HUNDRED")),
  sampled("all", ratio(100, "HUNDRED")),
  sampled("half", ratio(50, "HUNDRED")),
  sampled("tenthousand", ratio(5000, "TEN_THOUSAND")),
  sampled("million", ratio(123_456, "MILLION")),
  sampled("spawnhalf", ratio(50, "HUNDRED"), { spawn_upstream_span: true }),
  sampled("parenton", parentBased(alwaysOn)),
  sampled("parentnone", parentBased(ratio(0, "HUNDRED"))),
  sampled("parentspawn", parentBased(alwaysOn), { spawn_upstream_span: true }),
  sampled("parentcel", parentBased(cel(expressions["path"]!))),
  sampled("parenttwice", parentBased(parentBased(alwaysOn))),
  ...Object.entries(expressions).map(([named, expression]) => sampled(`cel${named}`, cel(expression))),
  sampled("celspawntrue", cel({ cel_expr_parsed: { expr: { const_expr: { bool_value: true } } } }), {
    spawn_upstream_span: true,
  }),
  sampled("celspawn", cel(expressions["path"]!), { spawn_upstream_span: true }),
  listener("static", { resource_detectors: [staticDetector({ "service.version": "1", empty: "" })] }),
  listener("statics", {
    resource_detectors: [staticDetector({ a: "1", b: "1" }), staticDetector({ b: "2", "service.name": "other" })],
  }),
];

const routes = ["/ok", "/other", "/status"].map((prefix) => ({ match: { prefix }, route: { cluster: "app" } }));

const span = "b7ad6b7169203331";
const parent = (traceId: string, flags = "01"): Readonly<Record<string, string>> => ({
  traceparent: `00-${traceId}-${span}-${flags}`,
});
/** Ids whose first eight bytes fall on either side of a share, by the order of bytes that Envoy reads them in. */
const traceIds = [
  "0000000000000001ffffffffffffffff",
  "0100000000000000ffffffffffffffff",
  "3100000000000000ffffffffffffffff",
  "3200000000000000ffffffffffffffff",
  "6400000000000000ffffffffffffffff",
  "0af7651916cd43dd8448eb211c80319c",
  "ffffffffffffffff0000000000000001",
  "80f198ee56343ba864fe8b2a57d3eff7",
  "4bf92f3577b34da6a3ce929d0e0e4736",
  "c0ffee00c0ffee00c0ffee00c0ffee00",
] as const;
const anyTrace = traceIds[5];

interface Row extends TracedCall {
  readonly differs?: (envoys: TracedOutcome, ours: TracedOutcome) => unknown;
}

function withTry(envoys: TracedOutcome, ours: TracedOutcome): unknown {
  assert.deepEqual(
    envoys.upstream.map(({ traceparent }) => traceparent!.slice(-3)),
    ["-00"],
  );
  return { ...envoys, upstream: ours.upstream, spans: [...envoys.spans, ours.spans[1]] };
}

const row = (
  listenerName: string,
  at: string,
  spans: TracedCall["spans"],
  headers: NonNullable<TracedCall["headers"]> = {},
  differs?: Row["differs"],
): Row => ({ listener: listenerName, path: at, spans, headers, ...(differs === undefined ? {} : { differs }) });

/** Whether a share takes an id, by other arithmetic than the sampler's. */
const takes = (traceId: string, numerator: number, denominator: number): boolean =>
  Buffer.from(traceId, "hex").readBigUInt64LE(0) % BigInt(denominator) < BigInt(numerator);
const shares = [
  ["half", 50, 100, 1],
  ["tenthousand", 5000, 10_000, 1],
  ["million", 123_456, 1_000_000, 1],
  ["spawnhalf", 50, 100, 2],
] as const;

const rows: readonly Row[] = [
  row("on", "/ok", 1),
  row("on", "/ok", 1, parent(anyTrace, "00")),
  row("onnone", "/ok", 0),
  row("onnone", "/ok", 0, parent(anyTrace)),
  row("onnone", "/ok", 1, { "x-envoy-force-trace": "1" }),
  row("none", "/ok", 0),
  row("none", "/ok", 0, parent(anyTrace)),
  row("all", "/ok", 1),
  row("all", "/ok", 1, parent(anyTrace, "00")),
  ...shares.flatMap(([named, numerator, denominator, spans]) =>
    traceIds.map((id) => row(named, "/ok", takes(id, numerator, denominator) ? spans : 0, parent(id))),
  ),
  row("parenton", "/ok", 1),
  row("parenton", "/ok", 1, { ...parent(anyTrace), tracestate: "a=1" }),
  row("parenton", "/ok", 0, { ...parent(anyTrace, "00"), tracestate: "a=1" }),
  row("parentnone", "/ok", 0),
  row("parentnone", "/ok", 1, parent(anyTrace)),
  row("parentspawn", "/ok", 2),
  row("parentspawn", "/ok", 2, parent(anyTrace)),
  row("parentspawn", "/ok", 0, parent(anyTrace, "00")),
  row("parentcel", "/ok", 1),
  row("parentcel", "/other", 0),
  row("parentcel", "/other", 1, parent(anyTrace)),
  row("parenttwice", "/ok", 1),
  ...Object.keys(expressions).flatMap((named) =>
    ["/ok", "/other", "/status/404"].flatMap((at) =>
      [{}, { "x-h": "h" }].map((headers) => row(`cel${named}`, at, "as told", headers)),
    ),
  ),
  row("celpath", "/ok", 1, { ...parent(anyTrace), tracestate: "a=1" }),
  // Envoy passes no list on where its expression says no.
  row("celpath", "/other", 0, { ...parent(anyTrace), tracestate: "a=1" }, (envoys) => ({
    ...envoys,
    upstream: [{ ...envoys.upstream[0], tracestate: "a=1" }],
  })),
  // Envoy asks again for each try, of which its expressions know no headers.
  { ...row("celspawn", "/ok", 2), envoysSpans: 1, differs: withTry },
  row("celspawn", "/other", 0),
  row("celspawntrue", "/ok", 2),
  row("static", "/ok", 1),
  row("statics", "/ok", 1),
];

suite("samplers and detectors of both", () => {
  let stage: TracingStage;
  let ours: readonly TracedOutcome[] = [];
  let envoys: readonly TracedOutcome[] = [];

  before(async () => {
    stage = await startTracingStage(listeners, routes);
    ({ ours, envoys } = await stage.run(rows));
  });
  after(() => stage.stop());

  for (const [index, { listener: at, path: asked, headers, differs }] of rows.entries()) {
    test(`${at} ${asked} ${JSON.stringify(headers)}`, () => {
      assert.deepEqual(ours[index], differs === undefined ? envoys[index] : differs(envoys[index]!, ours[index]!));
    });
  }
});
