// Writes Envoy's bootstrap document for a pod. Tulle's proxy and a stock Envoy start from the very same one.
import { messageFromJson } from "@tulle/xds/json";
import { type Bootstrap, BootstrapSchema } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import type { AgentSettings } from "../settings.ts";
import { metricsSink } from "./metrics-sink.ts";
import { overloadManager } from "./overload.ts";
import { typeUrl } from "./type-url.ts";

/** Istio's port of a proxy's admin pages. */
export const adminPort = 15_000;

/** Whether the pod has a network of its own, where capture leads its connections. */
export function hasOwnNetwork({ metadata }: Pick<AgentSettings, "metadata">): boolean {
  return (metadata["INTERCEPTION_MODE"] ?? "NONE") !== "NONE";
}

/** Where the admin pages are: for programs of the pod alone, where it has a network of its own. */
export function adminAddress(settings: Pick<AgentSettings, "metadata" | "podAddress">): string {
  return hasOwnNetwork(settings) ? "127.0.0.1" : settings.podAddress;
}

/** Istio's names for the sake of dashboards and of people who look for them. */
const controlPlaneCluster = "xds-grpc";
/** Where secrets name the agent as their source; translations rely on it. */
const secretsCluster = "sds-grpc";

/** Istio's. By default Envoy refuses a route table for a regular expression of more than 100 instructions. */
const maxRegexProgram = 32_768;

/** `sidecar|router ~ address ~ pod.namespace ~ domain` (Istio: pkg/model/proxy.go). */
export function nodeId(settings: AgentSettings): string {
  const { proxyType, podAddress, podName, podNamespace } = settings;
  return `${proxyType}~${podAddress}~${podName}.${podNamespace}~${podNamespace}.svc.cluster.local`;
}

/** The app label, or the workload. */
function workloadName({ metadata, podName }: AgentSettings): string {
  const labels = metadata["LABELS"] as Readonly<Record<string, unknown>> | undefined;
  const name = [labels?.["app"], metadata["WORKLOAD_NAME"], podName].find(
    (value) => typeof value === "string" && value !== "",
  );
  return String(name);
}

function nodeMetadata(settings: AgentSettings): Readonly<Record<string, unknown>> {
  return {
    NAME: settings.podName,
    NAMESPACE: settings.podNamespace,
    SERVICE_ACCOUNT: settings.serviceAccount,
    INSTANCE_IPS: settings.podAddress,
    CLUSTER_ID: "local",
    MESH_ID: "cluster.local",
    INTERCEPTION_MODE: "NONE",
    LABELS: {},
    ...settings.metadata,
  };
}

/** The agent's Unix sockets; without an identity there are no secrets to serve. */
export interface AgentSockets {
  readonly xds: string;
  readonly secrets: string | undefined;
}

/** The document in JSON, with Envoy's own field names. */
export function bootstrapDocument(settings: AgentSettings, sockets: AgentSockets): object {
  const overAds = (): object => ({
    ads: {},
    resource_api_version: "V3",
    // A proxy without clusters or listeners is not ready, however long it takes; by default Envoy would go on after 15
    // s.
    initial_fetch_timeout: "0s",
  });
  const metadata = nodeMetadata(settings);
  const isAlone = hasOwnNetwork(settings);
  const hasOutbound = settings.proxyType === "sidecar" && !isAlone;
  const sink = metricsSink(settings.metricExport, {
    workload: workloadName(settings),
    podName: settings.podName,
    podNamespace: settings.podNamespace,
    outboundAddress: hasOutbound ? settings.podAddress : undefined,
    clusterDomain: settings.clusterDomain,
  });
  // Istio's `service-cluster`.
  const cluster = `${workloadName(settings)}.${settings.podNamespace}`;
  return {
    node: { id: nodeId(settings), cluster, metadata },
    admin: { address: { socket_address: { address: adminAddress(settings), port_value: adminPort } } },
    ...(isAlone
      ? {}
      : {
          cluster_manager: {
            // The called proxy sees which pod calls, on one machine too, where any other address would be 127.0.0.1.
            upstream_bind_config: { source_address: { address: settings.podAddress, port_value: 0 } },
          },
        }),
    dynamic_resources: {
      ads_config: {
        api_type: "GRPC",
        transport_api_version: "V3",
        set_node_on_first_message_only: true,
        grpc_services: [{ envoy_grpc: { cluster_name: controlPlaneCluster } }],
      },
      cds_config: overAds(),
      lds_config: overAds(),
    },
    static_resources: {
      clusters: [
        agentCluster(controlPlaneCluster, sockets.xds),
        ...(sockets.secrets === undefined ? [] : [agentCluster(secretsCluster, sockets.secrets)]),
        ...sink.clusters,
      ],
    },
    ...sink.fields,
    stats_config: { use_all_default_tags: false, stats_tags: statsTags },
    layered_runtime: {
      layers: [{ name: "mesh", static_layer: { "re2.max_program_size.error_level": maxRegexProgram } }],
    },
    overload_manager: overloadManager(settings.memoryLimitBytes),
  };
}

/** The agent itself: it relays to the control plane, and hands out the workload's key and certificate. */
function agentCluster(name: string, socketPath: string): object {
  const endpoint = { endpoint: { address: { pipe: { path: socketPath } } } };
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": typeUrl("upstreams.http.v3.HttpProtocolOptions"),
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] },
  };
}

/** The first group leaves the metric's name, the second becomes the label (Envoy: TagSpecifier.regex). */
const statsTags = [
  // Hosts of the mesh have dots in their names, at which Envoy's own extraction would cut.
  { tag_name: "cluster_name", regex: "^cluster\\.((outbound\\|\\d+\\|[^|]*\\|.+?\\.svc\\.cluster\\.local|[^.]+)\\.)" },
  { tag_name: "http_conn_manager_prefix", regex: "^http\\.((\\d+(?:\\.\\d+){3}_\\d+|[^.]+)\\.)" },
  { tag_name: "response_code", regex: "_rq(_(\\d{3}))$" },
  { tag_name: "response_code_class", regex: "_rq(_(\\dxx))$" },
  { tag_name: "listener_address", regex: "^listener\\.((\\d+(?:\\.\\d+){3}_\\d+|[^.]+)\\.)" },
];

/** The document as a message. @throws if it is not sound, which would be this build's own fault */
export function bootstrapMessage(document: object): Bootstrap {
  const result = messageFromJson(BootstrapSchema, document);
  if (result.ok) return result.message;
  throw new Error(result.problems.map(({ path, message }) => `${path}: ${message}`).join("\n"));
}
