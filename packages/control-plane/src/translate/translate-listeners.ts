// Views → listeners: what a sidecar accepts for its workload and from its workload.
import { create } from "@bufbuild/protobuf";
import { type AdditionalAddress, AdditionalAddressSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { type Listener, ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { TrafficDirection } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { GatewayOwn, InboundPort, SidecarOwn } from "../scope/proxy-view.ts";
import { accessLogs } from "./access-logs.ts";
import { inboundConnectionManager, outboundConnectionManager } from "./http-connection-manager.ts";
import { type Filter, FilterSchema } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { inboundFilterChains, portFilters, type PortFilters } from "./inbound-filter-chains.ts";
import { socketAddress } from "./messages.ts";
import { httpProxyPort, httpProxyRoute, inboundClusterName, listenerName } from "../names/resource-names.ts";
import { statsConfig } from "./stats-config.ts";
import { tcpProxyFilters } from "./tcp-proxy-filters.ts";

const httpConnectionManager = "envoy.filters.network.http_connection_manager";

/** The explicit proxy that the workload's HTTP_PROXY names. */
export function translateOutboundListener(own: SidecarOwn): Listener {
  const name = listenerName(own.address, httpProxyPort);
  return create(ListenerSchema, {
    name,
    address: socketAddress(own.address, httpProxyPort),
    trafficDirection: TrafficDirection.OUTBOUND,
    filterChains: [
      {
        filters: [
          {
            name: httpConnectionManager,
            configType: {
              case: "typedConfig",
              value: outboundConnectionManager(`outbound_${name}`, httpProxyRoute, own),
            },
          },
        ],
      },
    ],
  });
}

/** The pod's own port: the proxy stands in front of the application, which listens elsewhere. */
export function translateInboundListener(own: SidecarOwn, port: InboundPort): Listener {
  const name = listenerName(own.address, port.targetPort);
  const logsTurnedAway = port.mutualTls !== undefined && own.telemetry?.withoutListenerLog !== true;
  return create(ListenerSchema, {
    name,
    address: socketAddress(own.address, port.targetPort),
    additionalAddresses: publishedAddresses(own, port.targetPort),
    trafficDirection: TrafficDirection.INBOUND,
    accessLog: logsTurnedAway ? accessLogs("turned away", { telemetry: own.telemetry?.server }) : [],
    ...inboundFilterChains(inboundFilters(own, port, name), {
      mutualTls: port.mutualTls,
      detectionTimeoutMs: own.protocolDetectionTimeoutMs,
      stats: statsConfig(own.telemetry?.server),
    }),
  });
}

function inboundFilters(own: SidecarOwn, port: InboundPort, listener: string): PortFilters {
  const cluster = inboundClusterName(port.targetPort);
  const manager = (): Filter => {
    const value = inboundConnectionManager(`inbound_${listener}`, port, own);
    return create(FilterSchema, { name: httpConnectionManager, configType: { case: "typedConfig", value } });
  };
  return portFilters(port.protocol, manager, () =>
    tcpProxyFilters(cluster, [{ cluster, weight: 1 }], { ...own, telemetry: own.telemetry?.server }),
  );
}

/** Of a proxy that binds them itself, since it cannot inherit them. */
export function publishedAddresses(own: GatewayOwn | SidecarOwn, targetPort: number): AdditionalAddress[] {
  return own.publishedPorts
    .filter((published) => published.targetPort === targetPort)
    .map(({ address, port }) => create(AdditionalAddressSchema, { address: socketAddress(address, port) }));
}
