// Access logs as log records of OpenTelemetry: what both proxies send for the same requests, over gRPC and over HTTP,
// and what a collector that is no good costs.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import { ExportLogsServiceRequestSchema } from "@tulle/xds/opentelemetry/proto/collector/logs/v1/logs_service_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { connectionManager, extension, http2Options, loopback, staticCluster } from "../testing/envoy-json.ts";
import { countersOf, type Side, type Sides, startSides } from "../testing/parity-pair.ts";
import { type CollectorAnswer, TraceCollector } from "../testing/trace-collector.ts";

const collector = new TraceCollector();
const { httpPort, grpcPort } = await collector.start();

const text = (string_value: string): object => ({ string_value });
const grpc_service = { envoy_grpc: { cluster_name: "grpc" } };
const buffer_flush_interval = "0.1s";
const loggers: readonly object[] = [
  {
    log_name: "all",
    stat_prefix: "all.",
    grpc_service,
    buffer_flush_interval,
    body: text("%REQ(:METHOD)% %REQ(:PATH)% %RESPONSE_CODE% %REQ(X-NONE)%"),
    attributes: {
      values: [
        { key: "code", value: text("%RESPONSE_CODE%") },
        { key: "none", value: text("%REQ(X-NONE)%") },
        { key: "constant", value: text("text") },
        { key: "list", value: { array_value: { values: [text("%PROTOCOL%"), text("two")] } } },
        { key: "map", value: { kvlist_value: { values: [{ key: "route", value: text("%ROUTE_NAME%") }] } } },
      ],
    },
    resource_attributes: { values: [{ key: "service.name", value: text("%PROTOCOL% is no format") }] },
  },
  { common_config: { log_name: "common", grpc_service, buffer_flush_interval, transport_api_version: "V3" } },
  {
    stat_prefix: "http.",
    http_service: { http_uri: { uri: "http://collector.test/v1/logs?a", cluster: "http", timeout: "1s" } },
    buffer_flush_interval,
    disable_builtin_labels: true,
    body: { kvlist_value: { values: [{ key: "path", value: text("%REQ_WITHOUT_QUERY(:PATH)%") }] } },
    formatters: [
      {
        name: "tulle.redacted_query:token",
        typed_config: { "@type": extension("formatter.req_without_query.v3.ReqWithoutQuery") },
      },
    ],
  },
];

function bootstrap(port: number): string {
  const routes = [
    { name: "gone", match: { path: "/gone" }, direct_response: { status: 410 } },
    { name: "rest", match: { prefix: "/" }, route: { cluster: "app" } },
  ];
  const manager = connectionManager(routes, {
    access_log: loggers.map((logger) => ({
      name: "otel",
      typed_config: {
        "@type": extension("access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig"),
        ...logger,
      },
    })),
  });
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  return JSON.stringify({
    node: { id: "the node", cluster: "its cluster", locality: { zone: "its zone" } },
    admin: { address: loopback(0) },
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

async function get({ ports }: Side, path: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${ports.get("main")}${path}`);
  await answer.text();
  return answer.status;
}

interface Sent {
  readonly resourceLogs: readonly {
    readonly resource: unknown;
    readonly scopeLogs: readonly {
      readonly scope?: unknown;
      readonly logRecords: readonly { timeUnixNano: string }[];
    }[];
  }[];
}

/** Each record with what stands around it; when it was is looked at and left out. */
function records(): readonly string[] {
  return collector.logs
    .flatMap(
      (body) =>
        (toJson(ExportLogsServiceRequestSchema, fromBinary(ExportLogsServiceRequestSchema, body)) as unknown as Sent)
          .resourceLogs,
    )
    .flatMap(({ resource, scopeLogs }) =>
      scopeLogs.flatMap(({ scope, logRecords }) =>
        logRecords.map(({ timeUnixNano, ...record }) => {
          assert.ok(Math.abs(Number(timeUnixNano) / 1e6 - Date.now()) < 300_000, timeUnixNano);
          return JSON.stringify({ resource, scope, record });
        }),
      ),
    );
}

const paths = ["/", "/gone", "/a?b=c"];

async function recordsOf(side: Side): Promise<readonly string[]> {
  collector.logs.length = 0;
  for (const path of paths) await get(side, path);
  await waitFor(() => records().length === paths.length * loggers.length, {
    what: "the log records",
    details: () => records().join("\n"),
  });
  return records().toSorted();
}

test("both proxies send the same records", async () => {
  const [ours, envoys] = [await recordsOf(sides.ours), await recordsOf(sides.envoy)];
  // Envoy leaves the whole query out where ours leaves one value out.
  assert.deepEqual(
    ours.map((record) => record.replace(/("path","value":\{"stringValue":"[^"?]*)\?[^"]*/, "$1")),
    envoys,
  );
  assert.ok(ours.some((record) => record.includes('"node_name","value":{"stringValue":"the node"}')));
});

test("a secret of a query does not reach the collector", async () => {
  collector.logs.length = 0;
  await get(sides.ours, "/x?token=secret&b=c");
  const found = await waitFor(() => records().find((record) => record.includes('"/x?')), { what: "its record" });
  assert.match(found, /"\/x\?token=redacted&b=c"/);
});

const answers: readonly CollectorAnswer[] = ["unavailable", "reset", "garbage"];
for (const answer of answers) {
  test(`a collector whose answer is ${answer} costs its records and a counter`, async () => {
    const counter = /^access_logs\.open_telemetry_access_log\.(all|http)\.logs_dropped$/;
    const sum = async (): Promise<number> =>
      Object.values(await countersOf(sides.ours, counter)).reduce((total, value) => total + value, 0);
    collector.answer = answer;
    const dropped = await sum();
    for (const path of paths) assert.equal(await get(sides.ours, path), path === "/gone" ? 410 : 200);
    await waitFor(async () => (await sum()) === dropped + 2 * paths.length, { what: "all of them to be dropped" });
    collector.answer = "good";
    assert.equal((await recordsOf(sides.ours)).length, paths.length * loggers.length);
  });
}
