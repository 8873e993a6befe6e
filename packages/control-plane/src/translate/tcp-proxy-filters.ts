// Where connections go once their chain is chosen, at gateways and at workloads' ports: past the policies to the TCP
// proxy, with one cluster or several by weight.
import type { Filter } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { TcpProxySchema } from "@tulle/xds/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb";
import { FilterConfigSchema } from "@tulle/xds/envoy/extensions/filters/network/sni_dynamic_forward_proxy/v3/sni_dynamic_forward_proxy_pb";
import type { ConnectionDestination } from "../scope/gateway-view.ts";
import type { WorkloadSecurity } from "../scope/proxy-view.ts";
import type { ListenerTelemetry } from "../scope/workload-telemetry.ts";
import { networkAuthorizationFilters } from "./authorization/network-authorization.ts";
import { dynamicDnsCache } from "./dns-caches.ts";
import { accessLogs } from "./access-logs.ts";
import { networkFilter, pack } from "./messages.ts";

/** One look-up for a connection: of several destinations that name their hosts so, the first one's port. */
function hostByServerName(destinations: readonly ConnectionDestination[]): readonly Filter[] {
  const port = destinations.find(({ namedAtPort }) => namedAtPort !== undefined)?.namedAtPort;
  if (port === undefined) return [];
  const portSpecifier = { case: "portValue", value: port } as const;
  const config = pack(FilterConfigSchema, { dnsCacheConfig: dynamicDnsCache(), portSpecifier });
  return [networkFilter("envoy.filters.network.sni_dynamic_forward_proxy", config)];
}

interface ConnectionsBy {
  readonly security?: WorkloadSecurity | undefined;
  readonly telemetry?: ListenerTelemetry | undefined;
}

export function tcpProxyFilters(
  statPrefix: string,
  destinations: readonly ConnectionDestination[],
  { security, telemetry }: ConnectionsBy,
): Filter[] {
  const [only] = destinations;
  const clusters = destinations.map(({ cluster: name, weight }) => ({ name, weight }));
  const value = pack(TcpProxySchema, {
    statPrefix,
    clusterSpecifier:
      destinations.length === 1
        ? { case: "cluster", value: only!.cluster }
        : { case: "weightedClusters", value: { clusters } },
    accessLog: accessLogs("connections", { telemetry }),
  });
  return [
    ...networkAuthorizationFilters(security),
    ...hostByServerName(destinations),
    networkFilter("envoy.filters.network.tcp_proxy", value),
  ];
}
