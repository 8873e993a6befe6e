// A gateway's view → its listeners: ports of plain HTTP, and ports whose filter chains are told apart by the server
// name that the client asks for.
import { create } from "@bufbuild/protobuf";
import { TrafficDirection } from "@tulle/xds/envoy/config/core/v3/base_pb";
import {
  type Filter,
  type FilterChain,
  FilterChainMatchSchema,
  FilterChainSchema,
  type ListenerFilter,
} from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { type Listener, ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import type { GatewayChain, GatewayListener } from "../scope/gateway-view.ts";
import type { GatewayOwn } from "../scope/proxy-view.ts";
import { gatewayHttpAlpn, gatewayTls } from "./gateway-tls-context.ts";
import { gatewayConnectionManager } from "./http-connection-manager.ts";
import { proxyProtocol, tlsInspector } from "./listener-filters.ts";
import { connectionStats, socketAddress } from "./messages.ts";
import { gatewayRouteName, listenerName } from "../names/resource-names.ts";
import { statsConfig } from "./stats-config.ts";
import { tcpProxyFilters } from "./tcp-proxy-filters.ts";
import { downstreamTlsSocket, meshClientAlpn } from "./tls-context.ts";

export function translateGatewayListeners(own: GatewayOwn): readonly Listener[] {
  return [
    ...own.targetPorts.map((port) => plainListener(own, port)),
    ...(own.connectionListeners ?? []).map((listener) => connectionListener(own, listener)),
  ];
}

/** Named as on Kubernetes; without interception a pod owns one address of the machine, and binds no other. */
function base(own: GatewayOwn, targetPort: number) {
  const address = own.interceptionMode === "NONE" ? own.address : "0.0.0.0";
  return {
    name: listenerName("0.0.0.0", targetPort),
    address: socketAddress(address, targetPort),
    trafficDirection: TrafficDirection.OUTBOUND,
  };
}

function plainListener(own: GatewayOwn, targetPort: number): Listener {
  const filters = [httpFilter(own, targetPort, gatewayRouteName(targetPort))];
  return create(ListenerSchema, {
    ...base(own, targetPort),
    listenerFilters: topologyFilters(own),
    filterChains: [{ filters }],
  });
}

function connectionListener(own: GatewayOwn, { targetPort, chains }: GatewayListener): Listener {
  const needsHello = chains.some((chain) => chain.serverNames.length > 0 || chain.tls !== undefined);
  return create(ListenerSchema, {
    ...base(own, targetPort),
    listenerFilters: [...topologyFilters(own), ...(needsHello ? [tlsInspector()] : [])],
    filterChains: chains.map((chain) => filterChain(own, targetPort, chain)),
  });
}

/** What every port of a gateway behind proxies has first. */
function topologyFilters({ topology }: GatewayOwn): ListenerFilter[] {
  return topology?.proxyProtocol === undefined ? [] : [proxyProtocol()];
}

function filterChain(own: GatewayOwn, targetPort: number, chain: GatewayChain): FilterChain {
  const { name, serverNames, tls, type } = chain;
  const alpn = type === "http" ? gatewayHttpAlpn : [];
  const applicationProtocols = type === "tcp" && chain.isAutoPassthrough === true ? [...meshClientAlpn] : [];
  const hasMatch = serverNames.length > 0 || applicationProtocols.length > 0;
  return create(FilterChainSchema, {
    name,
    ...(hasMatch
      ? { filterChainMatch: create(FilterChainMatchSchema, { serverNames: [...serverNames], applicationProtocols }) }
      : {}),
    filters:
      type === "http"
        ? [httpFilter(own, targetPort, chain.routeName)]
        : tcpProxyFilters(name, chain.destinations, { ...own, telemetry: own.telemetry?.client }),
    ...(type === "tcp" ? connectionStats(statsConfig(own.telemetry?.client)) : {}),
    ...(tls === undefined ? {} : { transportSocket: downstreamTlsSocket(gatewayTls(tls, alpn)) }),
  });
}

function httpFilter(own: GatewayOwn, targetPort: number, routeName: string): Filter {
  const statPrefix = `outbound_${listenerName("0.0.0.0", targetPort)}`;
  return gatewayConnectionManager(
    statPrefix,
    routeName,
    own,
    own.topology?.numTrustedProxies ?? 0,
    own.grpcWebPorts?.includes(targetPort) === true,
  );
}
