// The bootstrap that both sides of a parity pair start from: listeners on free ports, one back end, an access log in a file.

export interface ParityListener {
  readonly name: string;
  /** HTTP filters before the router, as JSON. */
  readonly filters: readonly object[];
  /** Routes to the back end are made of these; without any, one for every path. */
  readonly routes?: readonly object[];
  readonly manager?: object;
}

/** What listeners of a table need besides the back end. */
export interface ParityResources {
  readonly clusters?: readonly { readonly name: string; readonly port: number; readonly isHttp2?: boolean }[];
  readonly secrets?: readonly object[];
}

const extension = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
const address = (port_value: number): object => ({ socket_address: { address: "127.0.0.1", port_value } });

/** Each line of the log: `x-parity` of the request, code details, the metadata of that namespace. */
export function parityBootstrap(
  listeners: readonly ParityListener[],
  backEndPort: number,
  logPath: string,
  metadataNamespace: string,
  more: ParityResources = {},
): string {
  const format = `%REQ(x-parity)%\t%RESPONSE_CODE_DETAILS%\t%DYNAMIC_METADATA(${metadataNamespace})%\n`;
  const router = { name: "router", typed_config: { "@type": extension("filters.http.router.v3.Router") } };
  const managerOf = ({ name, filters, routes, manager }: ParityListener): object => ({
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: name,
    route_config: {
      name,
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: (routes ?? [{ match: { prefix: "/" } }]).map((route) => ({ ...route, route: { cluster: "app" } })),
        },
      ],
    },
    http_filters: [...filters, router],
    access_log: [
      {
        name: "envoy.access_loggers.file",
        typed_config: {
          "@type": extension("access_loggers.file.v3.FileAccessLog"),
          path: logPath,
          log_format: { text_format_source: { inline_string: format } },
        },
      },
    ],
    ...manager,
  });
  return JSON.stringify({
    admin: { address: address(0) },
    static_resources: {
      listeners: listeners.map((listener) => ({
        name: listener.name,
        address: address(0),
        filter_chains: [
          {
            filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: managerOf(listener) }],
          },
        ],
      })),
      ...(more.secrets !== undefined && { secrets: more.secrets }),
      clusters: [
        ...(more.clusters ?? []).map(({ name, port, isHttp2 }) => staticCluster(name, port, isHttp2)),
        staticCluster("app", backEndPort),
      ],
    },
  });
}

const http2Options = {
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type": extension("upstreams.http.v3.HttpProtocolOptions"),
    explicit_http_config: { http2_protocol_options: {} },
  },
};

function staticCluster(name: string, port: number, isHttp2 = false): object {
  return {
    name,
    type: "STATIC",
    ...(isHttp2 && { typed_extension_protocol_options: http2Options }),
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: address(port) } }] }],
    },
  };
}
