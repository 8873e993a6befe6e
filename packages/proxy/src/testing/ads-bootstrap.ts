// A bootstrap whose clusters and listeners come by one aggregated stream, for this proxy and a stock Envoy alike.
import { http2Options, loopback, staticCluster } from "./envoy-json.ts";

/** Resources come by the aggregated stream, and are waited for as long as it takes. */
export const adsSource = { ads: {}, initial_fetch_timeout: "0s", resource_api_version: "V3" };

export const adsConfig = {
  api_type: "GRPC",
  transport_api_version: "V3",
  grpc_services: [{ envoy_grpc: { cluster_name: "xds" } }],
};

export interface StaticResources {
  readonly clusters?: readonly object[];
  readonly listeners?: readonly object[];
}

/** As JSON. Beside the static resources there is the cluster of the stream. */
export function adsBootstrap(
  xdsPort: number,
  types: readonly ("cds_config" | "lds_config")[],
  { clusters = [], listeners = [] }: StaticResources = {},
): string {
  return JSON.stringify({
    node: { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local", cluster: "a.b" },
    admin: { address: loopback(0) },
    dynamic_resources: { ads_config: adsConfig, ...Object.fromEntries(types.map((type) => [type, adsSource])) },
    static_resources: {
      clusters: [staticCluster("xds", [xdsPort], { typed_extension_protocol_options: http2Options }), ...clusters],
      listeners,
    },
  });
}
