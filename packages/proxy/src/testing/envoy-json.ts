// The pieces of Envoy's configuration, as JSON, that tests put their bootstrap documents together from.

/** The type of a message by what stands behind `envoy.extensions.`. */
export const extension = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;

export const loopback = (port_value: number): object => ({ socket_address: { address: "127.0.0.1", port_value } });

export const inline = (inline_string: string): object => ({ inline_string });

export const router: object = { name: "router", typed_config: { "@type": extension("filters.http.router.v3.Router") } };

/** `format` has its line end. */
export function fileAccessLog(path: string, format: string): object {
  return {
    name: "envoy.access_loggers.file",
    typed_config: {
      "@type": extension("access_loggers.file.v3.FileAccessLog"),
      path,
      log_format: { text_format_source: { inline_string: format } },
    },
  };
}

/** Hosts are ports of this machine. */
export function staticCluster(name: string, ports: readonly number[], more: object = {}): object {
  const endpoints = ports.map((port) => ({ endpoint: { address: loopback(port) } }));
  return {
    name,
    type: "STATIC",
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: endpoints }] },
    ...more,
  };
}

/** Of a cluster's `typed_extension_protocol_options`. */
export const http2Options: object = {
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type": extension("upstreams.http.v3.HttpProtocolOptions"),
    explicit_http_config: { http2_protocol_options: {} },
  },
};

/** Takes requests for every host; no filter but the router, unless `more` says so. */
export function connectionManager(routes: readonly object[], more: object = {}): object {
  return {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "main",
    route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes }] },
    http_filters: [router],
    ...more,
  };
}
