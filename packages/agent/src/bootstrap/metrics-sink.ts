// Where a proxy sends its metrics by OTLP, as the standard variables of OpenTelemetry ask for it: a cluster and a sink
// of its bootstrap, the same for Tulle's proxy and for Envoy.
import type { MetricExportSettings } from "@tulle/telemetry";
import { typeUrl } from "./type-url.ts";

const clusterName = "otlp-metrics";

export interface MetricsSink {
  /** Of `static_resources`. */
  readonly clusters: readonly object[];
  /** Fields of the bootstrap itself. */
  readonly fields: object;
}

/** The listener of a sidecar that sends requests to where their authority says. */
const outboundPort = 15_007;

/** Whose proxy it is. */
export interface ReportingPod {
  readonly workload: string;
  readonly podName: string;
  readonly podNamespace: string;
  /** Of its sidecar's own listener for what leaves the pod; undefined where there is none. */
  readonly outboundAddress: string | undefined;
  readonly clusterDomain: string;
}

/** Two proxies with the same resource would be one to whoever reads them (OpenTelemetry's semantic conventions). */
function identityOf({ workload, podName, podNamespace }: ReportingPod): Readonly<Record<string, string>> {
  return {
    "service.name": workload,
    "service.namespace": podNamespace,
    "service.instance.id": `${podName}.${podNamespace}`,
    "k8s.namespace.name": podNamespace,
    "k8s.pod.name": podName,
  };
}

/** Nothing where nobody asks for it. */
export function metricsSink(settings: MetricExportSettings | undefined, pod: ReportingPod): MetricsSink {
  if (settings === undefined) return { clusters: [], fields: {} };
  const { intervalMs, temporality } = settings;
  const isDelta = temporality === "delta";
  const { endpoint } = settings;
  const isOfMesh = endpoint.hostname.endsWith(`.svc.${pod.clusterDomain}`);
  const through = isOfMesh ? pod.outboundAddress : undefined;
  return {
    clusters: [collectorCluster(settings, through)],
    fields: {
      stats_flush_interval: seconds(intervalMs),
      stats_sinks: [
        {
          name: "envoy.stat_sinks.open_telemetry",
          typed_config: {
            "@type": typeUrl("stat_sinks.open_telemetry.v3.SinkConfig"),
            ...service(settings, through !== undefined),
            resource_detectors: [
              {
                name: "envoy.tracers.opentelemetry.resource_detectors.static_config",
                typed_config: {
                  "@type": typeUrl("tracers.opentelemetry.resource_detectors.v3.StaticConfigResourceDetectorConfig"),
                  attributes: { ...settings.resource, ...identityOf(pod) },
                },
              },
            ],
            report_counters_as_deltas: isDelta,
            report_histograms_as_deltas: isDelta,
          },
        },
      ],
    },
  };
}

function service({ protocol, endpoint, headers, timeoutMs }: MetricExportSettings, isOfMesh: boolean): object {
  const timeout = seconds(timeoutMs);
  const named = Object.entries(headers);
  if (protocol === "grpc") {
    const metadata = named.map(([key, value]) => ({ key, value }));
    const authority = isOfMesh ? { authority: `${endpoint.hostname}:${portOf(endpoint)}` } : {};
    const target = { cluster_name: clusterName, ...authority };
    return { grpc_service: { envoy_grpc: target, timeout, initial_metadata: metadata } };
  }
  return {
    http_service: {
      http_uri: { uri: endpoint.href, cluster: clusterName, timeout },
      request_headers_to_add: named.map(([key, value]) => ({ header: { key, value } })),
    },
  };
}

function portOf({ port }: URL): number {
  return port === "" ? 80 : Number(port);
}

/**
 * A sink's cluster has to stand in the bootstrap, which knows neither the workloads of the mesh nor their identities.
 * So what goes to one of them takes the way of the pod's own calls, `through` its sidecar, and goes by mutual TLS.
 */
function collectorCluster({ protocol, endpoint }: MetricExportSettings, through: string | undefined): object {
  const address = through ?? endpoint.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = through === undefined ? portOf(endpoint) : outboundPort;
  const isIpv6 = address.includes(":");
  const host = { endpoint: { address: { socket_address: { address, port_value: port } } } };
  // The pod's own address reaches this machine alone.
  const upstream_bind_config = { source_address: { address: isIpv6 ? "::" : "0.0.0.0", port_value: 0 } };
  return {
    name: clusterName,
    type: through === undefined ? "STRICT_DNS" : "STATIC",
    connect_timeout: "1s",
    ...(through === undefined ? { upstream_bind_config } : {}),
    ...(protocol !== "grpc"
      ? {}
      : {
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
              "@type": typeUrl("upstreams.http.v3.HttpProtocolOptions"),
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
        }),
    load_assignment: { cluster_name: clusterName, endpoints: [{ lb_endpoints: [host] }] },
  };
}

/** A Duration in JSON. */
function seconds(timeMs: number): string {
  return `${timeMs / 1000}s`;
}
