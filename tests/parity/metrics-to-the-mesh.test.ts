// Metrics by OTLP to a collector that is a workload of the mesh and takes mutual TLS alone: both proxies reach it as
// the pod's own calls do, by what the agent writes into their bootstrap.
import assert from "node:assert/strict";
import http from "node:http";
import http2 from "node:http2";
import { after, before, describe, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { bootstrapDocument, parseSettings } from "@tulle/agent";
import { ExportMetricsServiceRequestSchema } from "@tulle/xds/opentelemetry/proto/collector/metrics/v1/metrics_service_pb";
import { MeshedProxies, type ProxyKind, type RunningPod } from "../tools/meshed-proxies.ts";
import { waitFor } from "../tools/processes.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const namespace = "shop";
const ports = { "http/protobuf": 4318, grpc: 4317 } as const;
type Protocol = keyof typeof ports;
const protocols = Object.keys(ports) as readonly Protocol[];

/** Whose proxy it is stands in its metrics and in its certificate. */
interface Told {
  readonly protocol: Protocol;
  readonly of: string | undefined;
  readonly identity: string | undefined;
  readonly metrics: number;
}

function told(protocol: Protocol, body: Buffer, certificate: unknown): Told {
  const { resourceMetrics } = fromBinary(ExportMetricsServiceRequestSchema, body);
  const [first] = resourceMetrics;
  const pod = first?.resource?.attributes.find(({ key }) => key === "k8s.pod.name")?.value?.value;
  const identity = /URI=spiffe:\/\/[^/]+\/ns\/shop\/sa\/([\w-]+)/.exec(String(certificate))?.[1];
  return {
    protocol,
    of: pod?.case === "stringValue" ? pod.value : undefined,
    identity,
    metrics: first?.scopeMetrics[0]?.metrics.length ?? 0,
  };
}

/** Undefined where the sender breaks off: proxies do as they end, or when the next report is due. */
async function wholeOf(body: AsyncIterable<unknown>): Promise<Buffer | undefined> {
  try {
    return Buffer.concat(await Array.fromAsync(body as AsyncIterable<Buffer>));
  } catch {
    return undefined;
  }
}

interface Document {
  readonly static_resources: { readonly clusters: readonly { readonly name: string }[] };
  readonly stats_flush_interval: string;
  readonly stats_sinks: readonly object[];
}

/** What the agent's document has for metrics. */
function sinkOf(protocol: Protocol, { name, address }: RunningPod) {
  const parsed = parseSettings({
    POD_NAME: name,
    POD_NAMESPACE: namespace,
    INSTANCE_IP: address,
    TULLE_XDS_ADDRESS: "127.0.0.1:15010",
    TULLE_STATE_DIR: "/nowhere",
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://collector.${namespace}.svc.cluster.local:${ports[protocol]}`,
    OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
    OTEL_METRIC_EXPORT_INTERVAL: "200",
  });
  assert.ok(parsed.ok);
  const document = bootstrapDocument(parsed.settings, { xds: "/nowhere", secrets: undefined }) as Document;
  const { static_resources, stats_flush_interval, stats_sinks } = document;
  const clusters = static_resources.clusters.filter((cluster) => cluster.name === "otlp-metrics");
  return { clusters, fields: { stats_flush_interval, stats_sinks } };
}

const senders = kinds.flatMap((proxy) =>
  protocols.map((protocol) => ({ name: `${proxy}-${protocol === "grpc" ? "grpc" : "http"}`, proxy, protocol })),
);

describe("metrics to a collector of the mesh that takes mutual TLS alone", () => {
  const open = new AsyncDisposableStack();
  const received: Told[] = [];

  async function startApplication({ name, appAddress }: RunningPod): Promise<AsyncDisposable> {
    const servers = new AsyncDisposableStack();
    if (name !== "collector") return servers;
    const overHttp = http.createServer(async (request, response) => {
      const body = await wholeOf(request);
      if (body === undefined) return;
      received.push(told("http/protobuf", body, request.headers["x-forwarded-client-cert"]));
      response.end();
    });
    const overGrpc = http2.createServer();
    overGrpc.on("stream", async (stream: http2.ServerHttp2Stream, headers) => {
      const body = await wholeOf(stream);
      if (body === undefined || stream.destroyed) return;
      received.push(told("grpc", body.subarray(5), headers["x-forwarded-client-cert"]));
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.end(Buffer.alloc(5));
    });
    for (const [server, protocol] of [
      [overHttp, "http/protobuf"],
      [overGrpc, "grpc"],
    ] as const) {
      const { promise, resolve } = Promise.withResolvers<void>();
      server.listen(ports[protocol], appAddress, resolve);
      await promise;
      servers.use(server);
    }
    servers.defer(() => overHttp.closeAllConnections());
    return servers;
  }

  before(async () => {
    const strict = {
      apiVersion: "security.istio.io/v1",
      kind: "PeerAuthentication",
      metadata: { name: "strict", namespace },
      spec: { mtls: { mode: "STRICT" } },
    };
    open.use(
      await MeshedProxies.start({
        pods: [
          ...senders.map(({ name, proxy }) => ({ name, namespace, proxy })),
          { name: "collector", namespace, proxy: "tulle" },
        ],
        ports: Object.values(ports),
        protocols: { [ports.grpc]: "grpc" },
        manifests: JSON.stringify(strict),
        bootstrapOf: (pod) => {
          const sender = senders.find(({ name }) => name === pod.name);
          return sender && sinkOf(sender.protocol, pod);
        },
        startApplication,
      }),
    );
  });
  after(() => open.disposeAsync());

  for (const { name, proxy, protocol } of senders) {
    test(`${proxy} by ${protocol}`, async () => {
      const isIts = ({ of, identity, metrics }: Told): boolean => of === name && identity === name && metrics > 10;
      await waitFor(() => received.some((each) => isIts(each) && each.protocol === protocol), {
        what: `metrics of ${name}`,
        details: () => JSON.stringify(received.slice(-20)),
      });
    });
  }
});
