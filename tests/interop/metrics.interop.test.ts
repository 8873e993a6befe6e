// Metrics of both proxies, and of a server, through a real OpenTelemetry collector, by gRPC and by HTTP: it takes
// them, and passes on what it understood of them.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { ExportMetricsServiceRequestSchema } from "@tulle/xds/opentelemetry/proto/collector/metrics/v1/metrics_service_pb";
import { Logging, MetricRegistry, openMetricExporter } from "@tulle/telemetry";
import { extension, http2Options, loopback, staticCluster } from "../../packages/proxy/src/testing/envoy-json.ts";
import { TraceCollector } from "../../packages/proxy/src/testing/trace-collector.ts";
import { envoyPath } from "../tools/envoy-path.ts";
import { freePort, startProcess, waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { startCollector, tracingProgram } from "./tracing/stage.ts";

const cli = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");

function bootstrap(grpcPort: number, httpPort: number): string {
  const sink = (more: object) => ({
    name: "envoy.stat_sinks.open_telemetry",
    typed_config: { "@type": extension("stat_sinks.open_telemetry.v3.SinkConfig"), ...more },
  });
  return JSON.stringify({
    node: { id: "n", cluster: "c" },
    admin: { address: loopback(0) },
    stats_flush_interval: "0.5s",
    stats_sinks: [
      sink({ grpc_service: { envoy_grpc: { cluster_name: "grpc" } }, prefix: "grpc" }),
      sink({
        http_service: { http_uri: { uri: "http://collector/v1/metrics", cluster: "http", timeout: "10s" } },
        prefix: "http",
        report_counters_as_deltas: true,
        report_histograms_as_deltas: true,
      }),
    ],
    static_resources: {
      clusters: [
        staticCluster("grpc", [grpcPort], { typed_extension_protocol_options: http2Options }),
        staticCluster("http", [httpPort]),
      ],
    },
  });
}

for (const proxy of ["tulle", "envoy"] as const) {
  describe(`metrics of ${proxy} through the collector`, () => {
    const open = new AsyncDisposableStack();
    const behind = new TraceCollector();

    before(
      async () => {
        const program = await tracingProgram();
        const { grpcPort } = await behind.start();
        open.defer(() => behind.close());
        const own = { address: "127.0.0.1", grpc: await freePort(), http: await freePort() };
        open.use(await startCollector(program, own, { address: "127.0.0.1", grpc: grpcPort, http: 0 }));
        const file = path.join(temporaryFolder("metrics-"), "bootstrap.json");
        await writeFile(file, bootstrap(own.grpc, own.http));
        const [command, args] =
          proxy === "tulle"
            ? [process.execPath, [cli, "proxy", "-c", file]]
            : [await envoyPath(), ["-c", file, "--disable-hot-restart", "--concurrency", "1"]];
        open.use(await startProcess(command, args, { name: proxy }));
      },
      { timeout: 600_000 },
    );
    after(() => open.disposeAsync());

    for (const prefix of ["grpc", "http"]) {
      test(`by ${prefix}: counters, gauges and histograms`, async () => {
        const kindsOf = (): ReadonlyMap<string, string> =>
          new Map(
            behind.metrics
              .flatMap((body) => fromBinary(ExportMetricsServiceRequestSchema, body).resourceMetrics)
              .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
              .filter(({ name }) => name.startsWith(`${prefix}.`))
              .map(({ name, data }) => {
                const temporality =
                  data.case === "sum" || data.case === "histogram" ? data.value.aggregationTemporality : 0;
                return [name.slice(prefix.length + 1), `${data.case} ${temporality}`];
              }),
          );
        // The sending is itself a request, on a connection that took its time to come up.
        const names = [
          "cluster.upstream_rq_total",
          "cluster.upstream_cx_connect_ms",
          "cluster.membership_total",
          "server.live",
        ];
        await waitFor(() => names.every((name) => kindsOf().has(name)), {
          what: "one of each kind",
          details: () => [...kindsOf().keys()].join("\n"),
        });
        const kinds = kindsOf();
        const temporality = prefix === "grpc" ? 2 : 1;
        assert.deepEqual(
          names.map((name) => kinds.get(name)),
          [`sum ${temporality}`, `histogram ${temporality}`, "gauge 0", "gauge 0"],
        );
      });
    }
  });
}

test("a server's own metrics through the collector", async () => {
  await using open = new AsyncDisposableStack();
  const behind = new TraceCollector();
  const { grpcPort } = await behind.start();
  open.defer(() => behind.close());
  const own = { address: "127.0.0.1", grpc: await freePort(), http: await freePort() };
  open.use(await startCollector(await tracingProgram(), own, { address: "127.0.0.1", grpc: grpcPort, http: 0 }));
  for (const [protocol, port] of [
    ["grpc", own.grpc],
    ["http/protobuf", own.http],
  ] as const) {
    const metrics = new MetricRegistry();
    metrics.counter({ name: "pilot_xds_pushes", labels: { type: protocol } }).add(7);
    const exporter = openMetricExporter({
      environment: {
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_SERVICE_NAME: protocol,
      },
      serviceName: "control-plane",
      version: "1",
      metrics,
      refresh: () => undefined,
      log: new Logging({ sink: () => undefined }).logger("test"),
    });
    await exporter!.close();
  }
  const told = (): readonly unknown[] =>
    behind.metrics
      .flatMap((body) => fromBinary(ExportMetricsServiceRequestSchema, body).resourceMetrics)
      .flatMap(({ resource, scopeMetrics }) =>
        scopeMetrics.flatMap((scope) =>
          scope.metrics.map(({ name, data }) => {
            const service = resource?.attributes.find(({ key }) => key === "service.name")?.value?.value.value;
            const point = data.case === "sum" ? data.value.dataPoints[0] : undefined;
            return [service, name, String(point?.value.value), point?.attributes[0]?.value?.value.value];
          }),
        ),
      );
  await waitFor(() => told().length === 2, { what: "the metrics of both" });
  assert.deepEqual(
    told().toSorted((a, b) => (String(a) < String(b) ? -1 : 1)),
    [
      ["grpc", "pilot_xds_pushes", "7", "grpc"],
      ["http/protobuf", "pilot_xds_pushes", "7", "http/protobuf"],
    ],
  );
});
