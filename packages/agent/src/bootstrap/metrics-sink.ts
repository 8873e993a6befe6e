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

/** Whose proxy it is. */
export interface ReportingPod {
  readonly workload: string;
  readonly podName: string;
  readonly podNamespace: string;
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
  return {
    clusters: [collectorCluster(settings)],
    fields: {
      stats_flush_interval: seconds(intervalMs),
      stats_sinks: [
        {
          name: "envoy.stat_sinks.open_telemetry",
          typed_config: {
            "@type": typeUrl("stat_sinks.open_telemetry.v3.SinkConfig"),
            ...service(settings),
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

function service({ protocol, endpoint, headers, timeoutMs }: MetricExportSettings): object {
  const timeout = seconds(timeoutMs);
  const named = Object.entries(headers);
  if (protocol === "grpc") {
    const metadata = named.map(([key, value]) => ({ key, value }));
    return { grpc_service: { envoy_grpc: { cluster_name: clusterName }, timeout, initial_metadata: metadata } };
  }
  return {
    http_service: {
      http_uri: { uri: endpoint.href, cluster: clusterName, timeout },
      request_headers_to_add: named.map(([key, value]) => ({ header: { key, value } })),
    },
  };
}

function collectorCluster({ protocol, endpoint }: MetricExportSettings): object {
  const address = endpoint.hostname.replace(/^\[(.*)\]$/, "$1");
  const isIpv6 = address.includes(":");
  const port = endpoint.port === "" ? 80 : Number(endpoint.port);
  const host = { endpoint: { address: { socket_address: { address, port_value: port } } } };
  return {
    name: clusterName,
    type: "STRICT_DNS",
    connect_timeout: "1s",
    // The pod's own address reaches this machine alone.
    upstream_bind_config: { source_address: { address: isIpv6 ? "::" : "0.0.0.0", port_value: 0 } },
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
