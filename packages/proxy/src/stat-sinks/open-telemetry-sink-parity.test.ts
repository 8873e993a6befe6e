// Metrics by OTLP: what both proxies send for the same load, over gRPC as sums of all time and over HTTP as what has
// come since, and what a collector that is no good costs.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import { ExportMetricsServiceRequestSchema } from "@tulle/xds/opentelemetry/proto/collector/metrics/v1/metrics_service_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { connectionManager, extension, http2Options, loopback, staticCluster } from "../testing/envoy-json.ts";
import { countersOf, type Side, type Sides, startSides } from "../testing/parity-pair.ts";
import { type CollectorAnswer, TraceCollector } from "../testing/trace-collector.ts";

const collector = new TraceCollector();
const { httpPort, grpcPort } = await collector.start();

const prefix = "pre.";
const timeout = "3s";
const sinks: readonly object[] = [
  { grpc_service: { envoy_grpc: { cluster_name: "grpc" }, timeout } },
  {
    http_service: { http_uri: { uri: "http://collector.test/v1/metrics?a", cluster: "http", timeout } },
    report_counters_as_deltas: true,
    report_histograms_as_deltas: true,
    emit_tags_as_attributes: false,
    use_tag_extracted_name: false,
    prefix: "pre",
  },
];

function bootstrap(port: number): string {
  const manager = connectionManager([
    { match: { path: "/gone" }, direct_response: { status: 410 } },
    { match: { prefix: "/" }, route: { cluster: "app" } },
  ]);
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  return JSON.stringify({
    node: { id: "the node", cluster: "its cluster" },
    admin: { address: loopback(0) },
    stats_flush_interval: "0.1s",
    stats_sinks: sinks.map((sink) => ({
      name: "envoy.stat_sinks.open_telemetry",
      typed_config: { "@type": extension("stat_sinks.open_telemetry.v3.SinkConfig"), ...sink },
    })),
    static_resources: {
      listeners: [{ name: "main", address: loopback(0), filter_chains: [{ filters }] }],
      clusters: [
        staticCluster("app", [port]),
        staticCluster("grpc", [grpcPort], { typed_extension_protocol_options: http2Options }),
        staticCluster("http", [httpPort]),
      ],
    },
  });
}

let sides: Sides;
before(async () => {
  sides = await startSides(
    http.createServer((_request, response) => response.end("ok")),
    1,
    bootstrap,
  );
});
after(async () => {
  await sides?.stop();
  collector.close();
});

const paths = ["/", "/a?b=c", "/gone"];

let askedOfOurs = 0;

async function load(side: Side): Promise<void> {
  const { ports } = side;
  if (side === sides.ours) askedOfOurs += paths.length;
  for (const path of paths) {
    const answer = await fetch(`http://127.0.0.1:${ports.get("main")}${path}`);
    await answer.text();
    assert.equal(answer.status, path === "/gone" ? 410 : 200);
  }
}

interface Point {
  readonly startTimeUnixNano?: string;
  readonly timeUnixNano: string;
  readonly asInt?: string;
  readonly count?: string;
  readonly bucketCounts?: readonly string[];
  readonly explicitBounds?: readonly number[];
  readonly attributes?: readonly { readonly key: string; readonly value: { readonly stringValue: string } }[];
}

interface Data {
  readonly dataPoints: readonly Point[];
  readonly aggregationTemporality?: string;
  readonly isMonotonic?: boolean;
}

interface Sent {
  readonly resourceMetrics: readonly {
    readonly resource: { readonly attributes: readonly { readonly key: string }[] };
    readonly scopeMetrics: readonly {
      readonly scope?: unknown;
      readonly metrics: readonly {
        readonly name: string;
        readonly gauge?: Data;
        readonly sum?: Data;
        readonly histogram?: Data;
      }[];
    }[];
  }[];
}

type Proxy = "ours" | "envoys";
type Form = "cumulative" | "delta";

interface Seen extends Point {
  readonly proxy: Proxy;
  readonly form: Form;
  /** Name, attributes, and all else that is not a value. */
  readonly key: string;
  readonly name: string;
  readonly kind: string;
}

const points: Seen[] = [];
let read = 0;

/** All that has come so far. */
function seen(): readonly Seen[] {
  for (; read < collector.metrics.length; read += 1) points.push(...pointsOf(collector.metrics[read]!));
  return points;
}

function pointsOf(body: Buffer): readonly Seen[] {
  const schema = ExportMetricsServiceRequestSchema;
  const { resourceMetrics } = toJson(schema, fromBinary(schema, body)) as unknown as Sent;
  const [{ resource, scopeMetrics } = assert.fail("no resource")] = resourceMetrics;
  const [{ scope, metrics } = assert.fail("no scope")] = scopeMetrics;
  assert.deepEqual([resourceMetrics.length, scopeMetrics.length, scope], [1, 1, undefined]);
  const keys = resource.attributes.map(({ key }) => key).sort();
  assert.deepEqual(keys, ["telemetry.sdk.language", "telemetry.sdk.name", "telemetry.sdk.version"]);
  const proxy = JSON.stringify(resource).includes("nodejs") ? "ours" : "envoys";
  return metrics.flatMap(({ name, ...kinds }) =>
    Object.entries(kinds).flatMap(([kind, { dataPoints, ...how }]) =>
      dataPoints.map((point): Seen => {
        const attributes = (point.attributes ?? []).map(({ key, value }) => `${key}=${value.stringValue}`).sort();
        const key = JSON.stringify([name, attributes, kind, how, point.explicitBounds, point.bucketCounts?.length]);
        return { ...point, proxy, form: name.startsWith(prefix) ? "delta" : "cumulative", key, name, kind };
      }),
    ),
  );
}

/** What the load alone decides. */
const compared: Readonly<Record<Form, RegExp>> = {
  cumulative:
    /^\["(cluster\.(upstream_rq(_total|_xx|_time|_completed)?|membership_healthy)",.*=app"|http\.downstream_rq_(total|xx|completed)",.*=main")/,
  delta:
    /^\["pre\.(cluster\.app\.(upstream_rq_(total|2xx|200|time|completed)|membership_healthy)|http\.main\.downstream_rq_(total|[24]xx|completed))"/,
};
const comparedCount = 10;

/** The last that was told of each; of what has come since, all of it together. */
function told(proxy: Proxy, form: Form): Readonly<Record<string, number>> {
  const values: Record<string, number> = {};
  for (const point of seen()) {
    if (point.proxy !== proxy || point.form !== form || !compared[form].test(point.key)) continue;
    const value = Number(point.asInt ?? point.count ?? 0);
    const isAdded = form === "delta" && point.kind !== "gauge";
    values[point.key] = isAdded ? (values[point.key] ?? 0) + value : value;
  }
  return values;
}

for (const form of ["cumulative", "delta"] as const) {
  test(`both proxies send the same for the same load: ${form}`, async () => {
    await load(sides.ours);
    await load(sides.envoy);
    const values = (): readonly object[] => [told("ours", form), told("envoys", form)];
    await waitFor(
      () => {
        const [ours, envoys] = values();
        return Object.keys(ours!).length === comparedCount && isDeepStrictEqual(ours, envoys);
      },
      { what: `the same ${form} values`, details: () => JSON.stringify(values(), undefined, 1) },
    );
  });
}

test("this proxy sends no names and attributes that are none of Envoy's, but for the sinks' own", async () => {
  const ofProxy = (proxy: Proxy): ReadonlySet<string> =>
    new Set(seen().flatMap((point) => (point.proxy === proxy ? [point.key] : [])));
  const alone = (): readonly string[] => {
    const envoys = ofProxy("envoys");
    return [...ofProxy("ours")].filter((key) => !envoys.has(key) && !ofSinks.test(key));
  };
  await waitFor(() => alone().length === 0, { what: "Envoy to send those too", details: () => alone().join("\n") });
});

/** How well sending goes differs, as time-outs do. */
const ofSinks =
  /^\["(pre\.)?(stat_sinks\.|cluster\.(grpc|http)\.)|^\["cluster\.[^"]*",\[.*"envoy\.cluster_name=(grpc|http)"/;

test("times are sound: sums begin where they began, what has come since begins where the last ended", () => {
  const nanosecondsAway = (text: string): number => Math.abs(Number(text) / 1e6 - Date.now());
  const ends = new Set<string>();
  const starts = new Map<string, string>();
  for (const { proxy, form, key, kind, startTimeUnixNano: start, timeUnixNano: end } of seen()) {
    if (proxy !== "ours") continue;
    assert.ok(nanosecondsAway(end) < 300_000, end);
    if (kind === "gauge") {
      assert.equal(start, undefined);
      continue;
    }
    assert.ok(BigInt(start!) < BigInt(end), key);
    if (form === "cumulative") assert.equal(starts.get(key) ?? start, start, key);
    else if (starts.has(key)) assert.ok(ends.has(start!), key);
    starts.set(key, start!);
    ends.add(end);
  }
  assert.ok(starts.size > 2 * comparedCount);
});

test("sent by HTTP to the path of the URI", () => {
  const asked = new Set(collector.requests.map((headers) => String(headers[":path"])));
  assert.deepEqual(
    asked,
    new Set(["/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", "/v1/metrics?a"]),
  );
});

const sinkCounter = async (name: string): Promise<number> => {
  const counters = await countersOf(sides.ours, new RegExp(`^stat_sinks\\.open_telemetry\\.${name}$`));
  return Object.values(counters)[0]!;
};

const answers: readonly CollectorAnswer[] = ["unavailable", "reset", "garbage"];
for (const answer of answers) {
  test(`a collector whose answer is ${answer} costs a counter, and sums are right again afterwards`, async () => {
    const dropped = await sinkCounter("points_dropped");
    collector.answer = answer;
    await waitFor(async () => (await sinkCounter("points_dropped")) > dropped, { what: "points to be dropped" });
    await load(sides.ours);
    collector.answer = "good";
    const total = (): number =>
      Object.entries(told("ours", "cumulative")).find(([key]) => key.startsWith('["http.downstream_rq_total"'))![1];
    await waitFor(() => total() === askedOfOurs, { what: "the sum with the requests of meanwhile" });
  });
}

test("a collector that never answers has one request of each sink, and requests are served", async () => {
  const skipped = await sinkCounter("flushes_skipped");
  collector.answer = "late";
  await waitFor(async () => (await sinkCounter("flushes_skipped")) > skipped + 2, { what: "times without a flush" });
  await load(sides.ours);
});
