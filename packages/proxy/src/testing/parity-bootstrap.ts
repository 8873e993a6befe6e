// The bootstrap that both sides of a parity pair start from: listeners on free ports, one back end, an access log in a
// file.
import { extension, fileAccessLog, http2Options, loopback, router, staticCluster } from "./envoy-json.ts";

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

/** Each line of the log: `x-parity` of the request, code details, the metadata of that namespace. */
export function parityBootstrap(
  listeners: readonly ParityListener[],
  backEndPort: number,
  logPath: string,
  metadataNamespace: string,
  more: ParityResources = {},
): string {
  const format = `%REQ(x-parity)%\t%RESPONSE_CODE_DETAILS%\t%DYNAMIC_METADATA(${metadataNamespace})%\n`;
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
    access_log: [fileAccessLog(logPath, format)],
    ...manager,
  });
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: listeners.map((listener) => ({
        name: listener.name,
        address: loopback(0),
        filter_chains: [
          {
            filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: managerOf(listener) }],
          },
        ],
      })),
      ...(more.secrets !== undefined && { secrets: more.secrets }),
      clusters: [
        ...(more.clusters ?? []).map(({ name, port, isHttp2 }) =>
          staticCluster(name, [port], isHttp2 ? { typed_extension_protocol_options: http2Options } : {}),
        ),
        staticCluster("app", [backEndPort]),
      ],
    },
  });
}
