// The bootstrap document that Tulle's proxy and Envoy both get: what an Istio ingress gateway is sent for one host with
// a few routes.
import { stringify } from "yaml";

export interface BootstrapPorts {
  readonly listenPort: number;
  readonly adminPort: number;
  readonly backendPort: number;
}

/** The mesh's default access log format. */
const accessLogFormat =
  '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ' +
  '%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% ' +
  '%BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" ' +
  '"%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% ' +
  "%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME% " +
  "%METADATA(VIRTUAL_HOST:tulle:revision)%\n";

export const cluster = "outbound|80||catalog.shop.svc.cluster.local";
/** The back end, too: whatever it is sent it answers with 200. */
const collector = "collector";

/** What Istio gives every route that sets nothing else. */
const defaultRetries = {
  retry_on: "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes",
  num_retries: 2,
  retry_host_predicate: [
    {
      name: "envoy.retry_host_predicates.previous_hosts",
      typed_config: {
        "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
      },
    },
  ],
  host_selection_retry_max_attempts: 5,
  retriable_status_codes: [503],
};

/** Watched all the time, reached never. */
const overloadManager = {
  refresh_interval: "0.25s",
  resource_monitors: [
    monitor("fixed_heap", "FixedHeapConfig", { max_heap_size_bytes: 2 ** 31 }),
    monitor("global_downstream_max_connections", "DownstreamConnectionsConfig", {
      max_active_downstream_connections: 50_000,
    }),
  ],
  actions: [
    {
      name: "envoy.overload_actions.stop_accepting_requests",
      triggers: [{ name: "envoy.resource_monitors.fixed_heap", threshold: { value: 0.98 } }],
    },
  ],
};

function monitor(name: string, type: string, settings: object) {
  const folder = name === "fixed_heap" ? name : "downstream_connections";
  const typed_config = {
    "@type": `type.googleapis.com/envoy.extensions.resource_monitors.${folder}.v3.${type}`,
    ...settings,
  };
  return { name: `envoy.resource_monitors.${name}`, typed_config };
}

/** What a DestinationRule with `connectionPool` and `outlierDetection` gives a cluster. */
const limits = {
  circuit_breakers: {
    thresholds: [
      {
        max_connections: 1024,
        max_pending_requests: 1024,
        max_requests: 1024,
        max_retries: 3,
        track_remaining: true,
      },
    ],
  },
  outlier_detection: {
    consecutive_5xx: 5,
    consecutive_gateway_failure: 5,
    enforcing_consecutive_gateway_failure: 100,
    interval: "1s",
    base_ejection_time: "30s",
    max_ejection_percent: 50,
    success_rate_request_volume: 100,
  },
};

const http2ToHosts = {
  typed_extension_protocol_options: {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};

export const route = (match: object) => ({ match, route: { cluster, timeout: "0s", retry_policy: defaultRetries } });

export interface Observed {
  /** An access log, and Istio's metrics, which a stock Envoy has not. */
  readonly hasLogAndMetrics: boolean;
  /** Of the requests, of which a span goes to a collector by OTLP/HTTP. */
  readonly tracedPercent: number;
}

export interface BootstrapOptions {
  readonly isHttp2: boolean;
  /** Undefined: an access log alone. */
  readonly observed?: Observed | undefined;
}

export function bootstrapYaml(
  ports: BootstrapPorts,
  accessLogFile: string,
  { isHttp2, observed }: BootstrapOptions = { isHttp2: false },
): string {
  return stringify({
    node: { id: "router~127.0.0.1~bench.istio-system~istio-system.svc.cluster.local", cluster: "bench" },
    admin: { address: socketAddress(ports.adminPort) },
    overload_manager: overloadManager,
    static_resources: {
      listeners: [listener(ports.listenPort, accessLogFile, ownRoutes(ports.listenPort), observed)],
      clusters: [
        { ...backend(ports.backendPort), ...(isHttp2 && http2ToHosts) },
        { ...backend(ports.backendPort), name: collector },
      ],
    },
  });
}

/** `routes`: the connection manager's `route_config` or `rds`. */
export function listener(port: number, accessLogFile: string, routes: object = ownRoutes(port), observed?: Observed) {
  return {
    name: `0.0.0.0_${port}`,
    address: socketAddress(port),
    filter_chains: [
      {
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            typed_config: { ...connectionManager(port, accessLogFile, routes), ...(observed && observing(observed)) },
          },
        ],
      },
    ],
  };
}

function connectionManager(port: number, accessLogFile: string, routes: object) {
  return {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    stat_prefix: `outbound_0.0.0.0_${port}`,
    use_remote_address: true,
    normalize_path: true,
    path_with_escaped_slashes_action: "KEEP_UNCHANGED",
    access_log: [
      {
        name: "envoy.access_loggers.file",
        typed_config: {
          "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
          path: accessLogFile,
          log_format: { text_format_source: { inline_string: accessLogFormat } },
        },
      },
    ],
    ...routes,
    http_filters: [router],
  };
}

/** What Istio gives a connection manager for logs, metrics and traces. */
function observing({ hasLogAndMetrics, tracedPercent }: Observed) {
  const tracing = {
    client_sampling: { value: 100 },
    random_sampling: { value: tracedPercent },
    overall_sampling: { value: 100 },
    custom_tags: ["istio.canonical_service", "istio.mesh_id", "istio.namespace"].map((tag) => ({
      tag,
      literal: { value: "catalog" },
    })),
    provider: {
      name: "envoy.tracers.opentelemetry",
      typed_config: {
        "@type": "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig",
        service_name: "bench.shop",
        http_service: { http_uri: { uri: "http://collector/v1/traces", cluster: collector, timeout: "5s" } },
      },
    },
  };
  return {
    ...(!hasLogAndMetrics && { access_log: [] }),
    ...(tracedPercent > 0 && { tracing }),
    http_filters: [...(hasLogAndMetrics ? [istioStats] : []), router],
  };
}

/** A stock Envoy skips it. */
const istioStats = {
  name: "istio.stats",
  is_optional: true,
  typed_config: {
    "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
    type_url: "type.googleapis.com/stats.PluginConfig",
  },
};

const router = {
  name: "envoy.filters.http.router",
  typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
};

function ownRoutes(port: number) {
  return {
    route_config: {
      name: `http.${port}`,
      virtual_hosts: [
        {
          name: `*:${port}`,
          domains: ["*"],
          routes: [
            route({ path: "/productpage" }),
            route({ prefix: "/static/" }),
            route({ path: "/login" }),
            route({ path: "/logout" }),
            route({ prefix: "/api/v1/products" }),
            route({ prefix: "/api/catalog" }),
          ],
        },
      ],
    },
  };
}

export function backend(port: number) {
  return {
    name: cluster,
    type: "STATIC",
    connect_timeout: "10s",
    lb_policy: "LEAST_REQUEST",
    ...limits,
    load_assignment: {
      cluster_name: cluster,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(port) } }] }],
    },
  };
}

export function socketAddress(port: number) {
  return { socket_address: { address: "127.0.0.1", port_value: port } };
}
