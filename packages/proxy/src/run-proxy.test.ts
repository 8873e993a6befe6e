// What a proxy still tells at its end: spans, access logs and metrics that wait for their time; and how long a
// collector that says nothing may hold the end up.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { inTime } from "../../../tests/tools/processes.ts";
import { parseBootstrap } from "./bootstrap/read-bootstrap.ts";
import { runProxy } from "./run-proxy.ts";
import { AccessLogService } from "./testing/access-log-service.ts";
import { connectionManager, extension, http2Options, loopback, staticCluster } from "./testing/envoy-json.ts";
import { TraceCollector } from "./testing/trace-collector.ts";
import { openTelemetry, zipkin } from "./testing/tracing-stage.ts";

/** No time-out of a request is meant to end what hangs. */
const timeout = "3600s";
const grpc_service = { envoy_grpc: { cluster_name: "collector" }, timeout };

interface Ports {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly logsPort: number;
}

function bootstrap({ httpPort, grpcPort, logsPort }: Ports): string {
  const logger = (name: string, type: string, config: object) => ({
    name,
    typed_config: { "@type": extension(`access_loggers.${type}`), ...config },
  });
  const access_log = [
    logger("otel", "open_telemetry.v3.OpenTelemetryAccessLogConfig", {
      log_name: "otel",
      grpc_service,
      buffer_flush_interval: timeout,
    }),
    logger("als", "grpc.v3.HttpGrpcAccessLogConfig", {
      common_config: {
        log_name: "als",
        grpc_service: { envoy_grpc: { cluster_name: "logs" } },
        buffer_flush_interval: timeout,
        transport_api_version: "V3",
      },
    }),
  ];
  const listener = (name: string, provider: object) => {
    const tracing = { provider, random_sampling: { value: 100 } };
    const routes = [{ match: { prefix: "/" }, direct_response: { status: 200 } }];
    const typed_config = connectionManager(routes, { tracing, access_log });
    const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config }];
    return { name, address: loopback(0), filter_chains: [{ filters }] };
  };
  return JSON.stringify({
    admin: { address: loopback(0) },
    stats_flush_interval: "299s",
    stats_sinks: [
      {
        name: "envoy.stat_sinks.open_telemetry",
        typed_config: { "@type": extension("stat_sinks.open_telemetry.v3.SinkConfig"), grpc_service },
      },
    ],
    static_resources: {
      listeners: [listener("otlp", openTelemetry({ grpc_service })), listener("zipkin", zipkin())],
      clusters: [
        staticCluster("http_collector", [httpPort]),
        staticCluster("collector", [grpcPort], { typed_extension_protocol_options: http2Options }),
        staticCluster("logs", [logsPort], { typed_extension_protocol_options: http2Options }),
      ],
    },
  });
}

async function askedProxy(t: TestContext, lastBatchesMs: number) {
  const collector = new TraceCollector();
  const service = new AccessLogService();
  const ports = { ...(await collector.start()), logsPort: await service.start() };
  t.after(() => {
    collector.close();
    service.close();
  });
  const logging = new Logging({ level: "off" });
  const proxy = await runProxy({ bootstrap: parseBootstrap(bootstrap(ports), "-"), env: {}, logging, lastBatchesMs });
  t.after(() => proxy.close());
  await proxy.ready;
  for (const [address] of proxy.listenerAddresses().values()) {
    const answer = await fetch(`http://127.0.0.1:${address!.port}/`);
    assert.equal(answer.status, 200);
    await answer.text();
  }
  return { proxy, collector, service };
}

test("what waits for its time is told before the end", async (t) => {
  const { proxy, collector, service } = await askedProxy(t, 3_600_000);
  await proxy.close();
  assert.deepEqual([collector.spans.length, collector.logs.length, collector.metrics.length], [2, 1, 1]);
  assert.equal(service.entries("als").length, 2);
  assert.equal(service.endedCalls, 1);
});

test("collectors that say nothing do not hold the end up", async (t) => {
  const { proxy, collector, service } = await askedProxy(t, 50);
  collector.answer = "late";
  service.behaviour = "hangs";
  await inTime(proxy.close(), "the end of the proxy");
});
