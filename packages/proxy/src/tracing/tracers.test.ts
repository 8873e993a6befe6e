// What tracers make of contexts that are not sound, where a new trace begins and Envoy gives up; and what never reaches
// a span.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Counter, Logging } from "@tulle/telemetry";
import { type CustomTag as CustomTagMessage, CustomTagSchema } from "@tulle/xds/envoy/type/tracing/v3/custom_tag_pb";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Cluster } from "../cluster/cluster.ts";
import { detachedScope } from "../fields/compile-scope.ts";
import { Place, Problems } from "../fields/problems.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { RequestHead } from "../http/message.ts";
import { StreamInfo } from "../http/stream-info.ts";
import { Slot } from "../runtime/slot.ts";
import { defaultExportLimits, BatchExporter, type BatchExporterSettings } from "../upstream/batch-exporter.ts";
import type { TagSink } from "./active-span.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { DataPath } from "../worker/data-path.ts";
import { CallSpan } from "./call-span.ts";
import { compileOperation } from "./compile-route-tracing.ts";
import { compileCustomTags, writeCustomTag } from "./custom-tags.ts";
import { OtlpTracer } from "./otlp-tracer.ts";
import { redactedNamesOf } from "../format/redacted-names.ts";
import { tagRequest } from "./span-tags.ts";
import { ZipkinJson } from "./zipkin-json.ts";
import { ZipkinTracer } from "./zipkin-tracer.ts";

const exporterSettings: BatchExporterSettings = {
  items: "spans",
  collector: {
    protocol: "http",
    cluster: new Slot<Cluster>("c"),
    scheme: "http",
    authority: "",
    path: "",
    headers: [],
    timeoutMs: 0,
  },
  limits: defaultExportLimits,
  envelope: (items) => items,
  stats: { sent: new Counter(), dropped: new Counter() },
};
const exporter = new BatchExporter(exporterSettings, undefined);
const otlp = new OtlpTracer(exporter, undefined);
const zipkin = new ZipkinTracer(
  exporter,
  { has128BitIds: false, sharesSpans: true, knowsTraceParent: true },
  new ZipkinJson("s"),
);

const request = (headers: readonly string[], path = "/"): RequestHead => ({
  method: "GET",
  scheme: "http",
  authority: "a.test",
  path,
  protocol: "HTTP/1.1",
  headers: new HeaderMap([...headers]),
});

const sound = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const contexts: readonly {
  readonly name: string;
  readonly tracer: "otlp" | "zipkin";
  readonly headers: readonly string[];
  readonly absent: readonly string[];
}[] = [
  {
    name: "a parent that is none",
    tracer: "otlp",
    headers: ["traceparent", "junk", "tracestate", "a=1"],
    absent: ["tracestate"],
  },
  {
    name: "two parents",
    tracer: "otlp",
    headers: ["traceparent", sound, "traceparent", sound.replace("9c-", "9d-")],
    absent: [],
  },
  { name: "states without a parent", tracer: "otlp", headers: ["tracestate", "a=1"], absent: ["tracestate"] },
  { name: "one header that is none", tracer: "zipkin", headers: ["b3", "junk"], absent: ["x-b3-traceid"] },
  { name: "two of the one header", tracer: "zipkin", headers: ["b3", "0", "b3", "1"], absent: ["x-b3-traceid"] },
  {
    name: "several of which one is none",
    tracer: "zipkin",
    headers: ["x-b3-traceid", "junk", "x-b3-spanid", "b7ad6b7169203331", "x-b3-parentspanid", "what"],
    absent: ["b3", "x-b3-parentspanid"],
  },
];
for (const { name, tracer: which, headers, absent } of contexts) {
  test(`a new trace begins: ${name}`, () => {
    const tracer = which === "otlp" ? otlp : zipkin;
    const head = request(headers);
    const span = tracer.start(head, "server", true, new StreamInfo(0, 0, "", "", ""));
    assert.equal(span.parentSpanId, "");
    assert.equal(span.isSampled, true);
    assert.notEqual(span.traceId, "0af7651916cd43dd8448eb211c80319c");
    tracer.inject(span, head.headers, span.spanId);
    for (const header of absent) assert.equal(head.headers.get(header), undefined, header);
    const text = head.headers.entries.join("\n");
    assert.ok(text.includes(span.traceId) && !text.includes("junk"), text);
    const names = head.headers.entries.filter((_, index) => index % 2 === 0);
    assert.equal(new Set(names).size, names.length);
  });
}

test("a list of states that is none goes, its parent stays", () => {
  const head = request(["traceparent", sound, "tracestate", "!!,=", "baggage", "k=v"]);
  const span = otlp.start(head, "server", true, new StreamInfo(0, 0, "", "", ""));
  otlp.inject(span, head.headers, span.spanId);
  assert.equal(span.traceId, "0af7651916cd43dd8448eb211c80319c");
  assert.equal(head.headers.get("tracestate"), undefined);
  assert.equal(head.headers.get("baggage"), "k=v");
});

test("a call's span is written once, however it ends", () => {
  const stats = { sent: new Counter(), dropped: new Counter() };
  const counted = new OtlpTracer(new BatchExporter({ ...exporterSettings, stats }, undefined), undefined);
  const dataPath = new DataPath({ logging: new Logging({ level: "off" }), random: () => 0, clock: new ManualClock() });
  const info = new StreamInfo(0, 0, "", "", "");
  assert.equal(CallSpan.begin(info, dataPath), undefined);
  const end = { name: "authorizer", status: 0, grpcStatus: undefined, isCanceled: true, tags: [] };
  for (const isTraced of [true, false]) {
    info.span = counted.start(request([]), "server", isTraced, info);
    info.span.tracer = counted;
    const call = CallSpan.begin(info, dataPath)!;
    call.end(end);
    call.end({ ...end, status: 200, isCanceled: false });
  }
  dataPath.timers.stop();
  assert.equal(stats.dropped.value, 1);
});

class Kept implements TagSink {
  readonly tags: Record<string, unknown> = {};

  tag(key: string, value: string): void {
    this.tags[key] = value;
  }

  typedTag(key: string, value: bigint | number | boolean): void {
    this.tags[key] = value;
  }
}

const redactedNames = redactedNamesOf({ tulle: { redacted_query_parameters: ["PIN", "own", "", 4] } });

function tagsOf(
  messages: readonly MessageInitShape<typeof CustomTagSchema>[],
  info: StreamInfo,
): Readonly<Record<string, unknown>> {
  const problems = new Problems();
  const list = messages.map((message): CustomTagMessage => create(CustomTagSchema, message));
  const tags = compileCustomTags(list, redactedNames, detachedScope(), Place.root, problems);
  assert.deepEqual(problems.list, []);
  const kept = new Kept();
  for (const tag of tags) writeCustomTag(tag, info, redactedNames, kept);
  return kept.tags;
}

test("secrets do not reach a span", () => {
  const info = new StreamInfo(0, 0, "", "127.0.0.1:1", "");
  const path = "/cb?code=SECRET&pin=SECRET&q=1";
  const head = request(
    ["authorization", "Bearer SECRET", "cookie", "s=SECRET", "referer", `https://a.test${path}`, "x-h", "h"],
    path,
  );
  info.request = head;
  const header = (tag: string, name: string) => ({ tag, type: { case: "requestHeader", value: { name } } }) as const;
  const value = (tag: string, text: string) => ({ tag, type: { case: "value", value: text } }) as const;
  const tags = tagsOf(
    [
      header("a", "Authorization"),
      header("b", "cookie"),
      header("c", "referer"),
      header("d", ":path"),
      value("e", "x %REQ(authorization)%"),
      value("f", "x %REQ(X-NONE?COOKIE)%"),
      value("g", "%REQ(:path)%"),
      header("h", "x-h"),
      header("i", "proxy-authorization"),
      value("j", "%CEL(request.headers['authorization'])% %TYPED_CEL(request.headers.cookie)%"),
      value("k", "%CEL(request.query)%"),
      value("l", "%QUERY_PARAM(code)% %QUERY_PARAM(PIN)% %QUERY_PARAM(q)%"),
      value("m", `%COALESCE({"operators":[{"command":"REQ","param":"Authorization"}]})%`),
      value("n", "%REQ_WITHOUT_QUERY(cookie)%"),
      value("o", "the cookie of %REQ(x-h)%"),
    ],
    info,
  );
  assert.deepEqual(tags, {
    a: "redacted",
    b: "redacted",
    c: "https://a.test/cb?code=redacted&pin=redacted&q=1",
    d: "/cb?code=redacted&pin=redacted&q=1",
    e: "redacted",
    f: "redacted",
    g: "/cb?code=redacted&pin=redacted&q=1",
    h: "h",
    j: "redacted",
    k: "code=redacted&pin=redacted&q=1",
    l: "redacted  1",
    m: "redacted",
    n: "redacted",
    o: "the cookie of h",
  });
  const problems = new Problems();
  const names = ["%REQ(:path)%", "%REQ(:path)% of %REQ(cookie)%"].map((format) =>
    compileOperation(format, redactedNames, detachedScope(), Place.root, problems)?.(info, redactedNames),
  );
  assert.deepEqual(names, ["/cb?code=redacted&pin=redacted&q=1", "redacted"]);
  const kept = new Kept();
  tagRequest(info, head, { nodeId: "", zone: "", maxPathTagLength: 256, redactedNames }, kept);
  assert.equal(kept.tags["http.url"], "http://a.test/cb?code=redacted&pin=redacted&q=1");
  assert.ok(!JSON.stringify(kept.tags).includes("SECRET"));
});
