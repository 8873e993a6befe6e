// Where a gateway's connections go once their chain is chosen: the TCP proxy, with one cluster or several by weight.
import { create } from "@bufbuild/protobuf";
import { type Filter, FilterSchema } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { TcpProxySchema } from "@tulle/xds/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb";
import type { ConnectionDestination } from "../scope/gateway-view.ts";
import { accessLog } from "./http-connection-manager.ts";
import { pack } from "./messages.ts";

export function gatewayTcpFilters(statPrefix: string, destinations: readonly ConnectionDestination[]): Filter[] {
  const [only] = destinations;
  const clusters = destinations.map(({ cluster: name, weight }) => ({ name, weight }));
  const value = pack(TcpProxySchema, {
    statPrefix,
    clusterSpecifier:
      destinations.length === 1
        ? { case: "cluster", value: only!.cluster }
        : { case: "weightedClusters", value: { clusters } },
    accessLog: [accessLog()],
  });
  return [
    create(FilterSchema, { name: "envoy.filters.network.tcp_proxy", configType: { case: "typedConfig", value } }),
  ];
}
