// What both proxies of the failure table start from: listeners with short time-outs, a route for each time limit, and
// clusters that cannot serve.
import { extension, fileAccessLog, loopback, router, staticCluster } from "../envoy-json.ts";

/** Of the time-outs that a row waits for; long enough for an answer to begin before it on a busy machine. */
const shortTime = "4s";

/** A line: the client's address, then what failed. */
const logFormat =
  "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%\t%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n";

interface FailureListener {
  readonly name: string;
  readonly manager: object;
  /** Before the router. */
  readonly filters?: readonly object[];
}

/** Asks the back end at the request's path behind a prefix, and shows it ten bytes of the body at most. */
const authorization = (cluster: string, path_prefix: string): object => ({
  name: "envoy.filters.http.ext_authz",
  typed_config: {
    "@type": extension("filters.http.ext_authz.v3.ExtAuthz"),
    transport_api_version: "V3",
    with_request_body: { max_request_bytes: 10 },
    http_service: {
      server_uri: { uri: "http://authorizer.test", cluster, timeout: "60s" },
      path_prefix,
    },
  },
});

export const failureListeners: readonly FailureListener[] = [
  {
    name: "main",
    manager: {
      request_headers_timeout: shortTime,
      request_timeout: "9s",
      http_protocol_options: { accept_http_10: true },
    },
  },
  { name: "strict", manager: {} },
  { name: "idle", manager: { common_http_protocol_options: { idle_timeout: shortTime } } },
  {
    name: "short-lived",
    manager: { common_http_protocol_options: { max_connection_duration: shortTime }, drain_timeout: "0.2s" },
  },
  { name: "three-requests", manager: { common_http_protocol_options: { max_requests_per_connection: 3 } } },
  { name: "redirecting", manager: { path_with_escaped_slashes_action: "UNESCAPE_AND_REDIRECT" } },
  { name: "authorized", manager: {}, filters: [authorization("app", "/authorize")] },
  { name: "unauthorized", manager: {}, filters: [authorization("no-authorizer", "")] },
  { name: "short-streams", manager: { common_http_protocol_options: { max_stream_duration: shortTime } } },
];

/** More specific than the route for everything, by the beginning of the path. */
const routes: readonly object[] = [
  { match: { prefix: "/timeout/" }, route: { timeout: shortTime } },
  { match: { prefix: "/try-timeout/" }, route: { retry_policy: { per_try_timeout: shortTime } } },
  { match: { prefix: "/try-idle/" }, route: { retry_policy: { per_try_idle_timeout: shortTime } } },
  { match: { prefix: "/stream-idle/" }, route: { idle_timeout: shortTime } },
  { match: { prefix: "/stream-duration/" }, route: { max_stream_duration: { max_stream_duration: shortTime } } },
  {
    match: { prefix: "/websocket/" },
    route: { timeout: "1s", idle_timeout: shortTime, upgrade_configs: [{ upgrade_type: "websocket" }] },
  },
  { match: { prefix: "/retried/" }, route: { retry_policy: { retry_on: "reset,connect-failure", num_retries: 1 } } },
];

const clusterRoutes: readonly object[] = [
  "refused",
  "retried-refused",
  "missing",
  "empty",
  "full",
  "max-duration",
  "closing",
  "second",
  "mute",
].map((name) => ({
  match: { prefix: `/${name}/` },
  route: {
    cluster: name,
    timeout: "0s",
    prefix_rewrite: "/",
    ...(name === "retried-refused" && {
      retry_policy: { retry_on: "connect-failure", num_retries: 1 },
    }),
  },
}));

/** `closedPort` refuses connections. */
export function failureBootstrap(backEndPort: number, closedPort: number, logPath: string): string {
  const toBackEnd = routes.map((each) => {
    const { match, route } = each as { match: object; route: object };
    return { match, route: { cluster: "app", timeout: "0s", prefix_rewrite: "/", ...route } };
  });
  const managerOf = ({ name, manager, filters = [] }: FailureListener): object => ({
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: name,
    normalize_path: true,
    path_with_escaped_slashes_action: "REJECT_REQUEST",
    route_config: {
      name,
      validate_clusters: false,
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [
            ...toBackEnd,
            ...clusterRoutes,
            { match: { safe_regex: { regex: "/[a-z0-9-]*" } }, route: { cluster: "app", timeout: "0s" } },
          ],
        },
      ],
    },
    http_filters: [...filters, router],
    access_log: [fileAccessLog(logPath, logFormat)],
    ...manager,
  });
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: failureListeners.map((listener) => ({
        name: listener.name,
        address: loopback(0),
        per_connection_buffer_limit_bytes: 256 * 1024,
        filter_chains: [
          { filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: managerOf(listener) }] },
        ],
      })),
      clusters: [
        limitedCluster("app", backEndPort),
        // Whose connections end with the answer, so that no other row is given one of them.
        limitedCluster("closing", backEndPort),
        limitedCluster("second", backEndPort),
        // One each: requests that wait for one connection fail together with it.
        limitedCluster("refused", closedPort),
        limitedCluster("retried-refused", closedPort),
        limitedCluster("no-authorizer", closedPort),
        // The back end speaks no TLS, and says nothing to a hello.
        limitedCluster("mute", backEndPort, {
          connect_timeout: shortTime,
          transport_socket: {
            name: "envoy.transport_sockets.tls",
            typed_config: { "@type": extension("transport_sockets.tls.v3.UpstreamTlsContext") },
          },
        }),
        limitedCluster("empty", undefined),
        limitedCluster("full", backEndPort, { circuit_breakers: { thresholds: [{ max_requests: 0 }] } }),
        limitedCluster("max-duration", backEndPort, {
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
              "@type": extension("upstreams.http.v3.HttpProtocolOptions"),
              explicit_http_config: { http_protocol_options: {} },
              common_http_protocol_options: { max_stream_duration: shortTime },
            },
          },
        }),
      ],
    },
  });
}

function limitedCluster(name: string, port: number | undefined, more: object = {}): object {
  const limit = { per_connection_buffer_limit_bytes: 256 * 1024 };
  return staticCluster(name, port === undefined ? [] : [port], { ...limit, ...more });
}
