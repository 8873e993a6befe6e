// What becomes of a server's metrics while the collector takes them, refuses them, hangs or is not there, and what each
// variable of OpenTelemetry's does. A real collector reads them in tests/interop/metrics.interop.test.ts.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { Logging } from "../log.ts";
import { MetricRegistry } from "../metrics.ts";
import { openMetricExporter } from "./metric-exporter.ts";
import { metricsEnvironment } from "./metrics-environment.ts";

type Environment = Readonly<Record<string, string>>;

function exporterOf(environment: Environment) {
  const metrics = new MetricRegistry();
  const pushes = metrics.counter({ name: "pushes_total", labels: { type: "cds" } });
  let refreshes = 0;
  const logging = new Logging({ sink: () => undefined });
  const exporter = openMetricExporter({
    environment,
    serviceName: "own",
    version: "1",
    metrics,
    refresh: () => (refreshes += 1),
    log: logging.logger("test"),
  });
  const value = (name: string): number => {
    const found = [...metrics.allSeries()].find((series) => series.name === `tulle_own_metric_${name}_total`);
    return found === undefined ? -1 : (found.metric as { value: number }).value;
  };
  const counts = () => [value("points_sent"), value("points_dropped"), value("flushes_skipped")];
  return { exporter, pushes, counts, refreshes: () => refreshes };
}

async function endpointOf(t: TestContext, server: http.Server | http2.Http2Server): Promise<Environment> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  return { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const impatient = { OTEL_EXPORTER_OTLP_TIMEOUT: "50" };

const answers: readonly {
  readonly name: string;
  readonly answer: (response: http.ServerResponse) => void;
  readonly environment?: Environment;
  readonly expected: readonly number[];
}[] = [
  // The second time tells what the first has counted, too.
  { name: "takes them", answer: (response) => response.end("{}"), expected: [1 + 2, 0, 0] },
  { name: "refuses them", answer: (response) => response.writeHead(429).end(), expected: [0, 1 + 2, 0] },
  { name: "breaks off", answer: (response) => response.destroy(), expected: [0, 1 + 2, 0] },
  { name: "answers rubbish", answer: ({ socket }) => socket!.end("what\r\n\r\n"), expected: [0, 1 + 2, 0] },
  { name: "says nothing", answer: () => undefined, environment: impatient, expected: [0, 1 + 2, 0] },
];
for (const { name, answer, environment, expected } of answers) {
  test(`HTTP: a collector that ${name}`, async (t) => {
    const paths = new Set<string>();
    const server = http.createServer((request, response) => {
      paths.add(`${request.method} ${request.url} ${request.headers["content-type"]}`);
      request.resume();
      request.on("end", () => answer(response));
    });
    const { exporter, pushes, counts, refreshes } = exporterOf({ ...(await endpointOf(t, server)), ...environment });
    pushes.increment();
    await exporter!.flush();
    await exporter!.close();
    server.closeAllConnections();
    assert.deepEqual(counts(), expected);
    assert.deepEqual([...paths], ["POST /v1/metrics application/x-protobuf"]);
    assert.equal(refreshes(), 2);
  });
}

test("a time that is not over is not joined by another", async (t) => {
  const server = http.createServer();
  const { exporter, pushes, counts } = exporterOf(await endpointOf(t, server));
  pushes.increment();
  const first = exporter!.flush();
  const [, response] = (await once(server, "request")) as [unknown, http.ServerResponse];
  await exporter!.flush();
  assert.deepEqual(counts(), [0, 0, 1]);
  response.end();
  await first;
  assert.deepEqual(counts(), [1, 0, 1]);
  server.once("request", (_request, last: http.ServerResponse) => void last.end());
  await exporter!.close();
});

test("gRPC: each request goes to the metrics service", async (t) => {
  const server = http2.createServer();
  const paths: string[] = [];
  server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    paths.push(headers[":path"]!);
    stream.resume();
    stream.on("end", () => stream.respond({ "grpc-status": "0" }, { endStream: true }));
  });
  const { exporter, pushes, counts } = exporterOf({
    ...(await endpointOf(t, server)),
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "grpc",
  });
  pushes.increment();
  await exporter!.close();
  assert.deepEqual(counts(), [1, 0, 0]);
  assert.deepEqual(paths, ["/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"]);
});

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };
const rows: readonly {
  readonly name: string;
  readonly environment: Environment;
  readonly expected: Readonly<Record<string, unknown>> | undefined;
  readonly problems?: readonly RegExp[];
}[] = [
  { name: "nothing", environment: {}, expected: undefined },
  { name: "no exporter", environment: { ...endpoint, OTEL_METRICS_EXPORTER: "none" }, expected: undefined },
  {
    name: "another exporter",
    environment: { ...endpoint, OTEL_METRICS_EXPORTER: "prometheus" },
    expected: undefined,
    problems: [/^OTEL_METRICS_EXPORTER is neither/],
  },
  { name: "switched off", environment: { ...endpoint, OTEL_SDK_DISABLED: "true" }, expected: undefined },
  {
    name: "an endpoint of traces alone",
    environment: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:4318/v1/traces" },
    expected: undefined,
  },
  {
    name: "an endpoint alone",
    environment: endpoint,
    expected: {
      endpoint: "http://127.0.0.1:4318/v1/metrics",
      protocol: "http/protobuf",
      intervalMs: 60_000,
      exportTimeoutMs: 30_000,
      temporality: "cumulative",
    },
  },
  {
    name: "metrics of their own, times and deltas",
    environment: {
      ...endpoint,
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://other/x",
      OTEL_METRIC_EXPORT_INTERVAL: "5000",
      OTEL_METRIC_EXPORT_TIMEOUT: "1000",
      OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "Delta",
    },
    expected: { endpoint: "http://other/x", intervalMs: 5000, exportTimeoutMs: 1000, temporality: "delta" },
  },
  {
    name: "what is not understood",
    environment: {
      ...endpoint,
      OTEL_METRIC_EXPORT_INTERVAL: "often",
      OTEL_METRIC_EXPORT_TIMEOUT: "0",
      OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "sometimes",
    },
    expected: { intervalMs: 60_000, exportTimeoutMs: 30_000, temporality: "cumulative" },
    problems: [
      /^OTEL_METRIC_EXPORT_INTERVAL is/,
      /^OTEL_METRIC_EXPORT_TIMEOUT is/,
      /TEMPORALITY_PREFERENCE is none of/,
    ],
  },
];
for (const { name, environment, expected, problems = [] } of rows) {
  test(`the environment: ${name}`, () => {
    const found = metricsEnvironment(environment, "own");
    assert.equal(found.problems.length, problems.length, found.problems.join("\n"));
    for (const [index, problem] of found.problems.entries()) assert.match(problem, problems[index]!);
    const settings = found.settings && { ...found.settings, endpoint: found.settings.endpoint.href };
    if (expected === undefined) assert.equal(settings, undefined);
    else assert.partialDeepStrictEqual(settings, expected);
  });
}
