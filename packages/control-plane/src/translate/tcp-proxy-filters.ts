// Where connections go once their chain is chosen, at gateways and at workloads' ports: past the policies to the TCP
// proxy, with one cluster or several by weight.
import type { Filter } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { TcpProxySchema } from "@tulle/xds/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb";
import type { ConnectionDestination } from "../scope/gateway-view.ts";
import type { WorkloadSecurity } from "../scope/proxy-view.ts";
import type { ListenerTelemetry } from "../scope/workload-telemetry.ts";
import { networkAuthorizationFilters } from "./authorization/network-authorization.ts";
import { accessLogs } from "./access-logs.ts";
import { networkFilter, pack } from "./messages.ts";

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
  return [...networkAuthorizationFilters(security), networkFilter("envoy.filters.network.tcp_proxy", value)];
}
