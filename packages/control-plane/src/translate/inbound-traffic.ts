// What a sidecar does with connections to its workload, wherever it takes them: requests and bytes of a port, by the
// port's mutual TLS, under the workload's policies.
import { isHttp, passesConnections } from "@tulle/config";
import type { AccessLog } from "@tulle/xds/envoy/config/accesslog/v3/accesslog_pb";
import { inboundClusterName, inboundPassthroughCluster } from "../names/resource-names.ts";
import type { InboundPort, PortMutualTls, SidecarOwn } from "../scope/proxy-view.ts";
import { accessLogs } from "./access-logs.ts";
import { inboundConnectionManager } from "./http-connection-manager.ts";
import type { InboundTarget } from "./http-routes.ts";
import { type InboundChains, inboundFilterChains } from "./inbound-filter-chains.ts";
import { statsConfig } from "./stats-config.ts";
import { tcpProxyFilters } from "./tcp-proxy-filters.ts";

export function targetOfPort({ targetPort, servicePort, protocol, service }: InboundPort): InboundTarget {
  return { cluster: inboundClusterName(targetPort), hostname: service.hostname, servicePort, protocol };
}

/** Of ports that no Service leads to. */
export const passthroughTarget: InboundTarget = {
  cluster: inboundPassthroughCluster,
  hostname: "",
  servicePort: 0,
  protocol: "auto",
};

export function inboundTraffic(
  own: SidecarOwn,
  target: InboundTarget,
  statPrefix: string,
  mutualTls: PortMutualTls | undefined,
): InboundChains {
  const { cluster, protocol } = target;
  const telemetry = own.telemetry?.server;
  const filters = {
    ...(isHttp(protocol) ? { http: [inboundConnectionManager(statPrefix, target, own)] } : {}),
    ...(passesConnections(protocol)
      ? { tcp: tcpProxyFilters(cluster, [{ cluster, weight: 1 }], { ...own, telemetry }) }
      : {}),
  };
  const { protocolDetectionTimeoutMs: detectionTimeoutMs } = own;
  return inboundFilterChains(filters, { mutualTls, detectionTimeoutMs, stats: statsConfig(telemetry) });
}

/** Of connections that no chain takes: a listener of ports without mutual TLS has chains for all. */
export function turnedAwayLogs(
  { telemetry }: SidecarOwn,
  ports: readonly { readonly mutualTls?: PortMutualTls }[],
): AccessLog[] {
  const isLogged = ports.some(({ mutualTls }) => mutualTls !== undefined) && telemetry?.withoutListenerLog !== true;
  return isLogged ? accessLogs("turned away", { telemetry: telemetry?.server }) : [];
}
