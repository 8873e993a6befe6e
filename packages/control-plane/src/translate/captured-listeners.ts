// Views → listeners of a sidecar to which the kernel redirects its workload's connections (interceptionMode REDIRECT,
// TPROXY), by Istio's names: `virtualOutbound` and `virtualInbound` are bound, the others get what the first hands
// over.
import { create } from "@bufbuild/protobuf";
import {
  type Filter,
  type FilterChain,
  FilterChainMatchSchema,
  FilterChainSchema,
  FilterSchema,
  type ListenerFilter,
  type ListenerFilterChainMatchPredicate,
  ListenerFilterChainMatchPredicateSchema,
  ListenerFilterSchema,
} from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { type Listener, ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { TrafficDirection } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { OriginalDstSchema } from "@tulle/xds/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb";
import type { CapturedConnections, CapturedSidecar, InboundPort, SidecarOwn } from "../scope/proxy-view.ts";
import type { ConnectionDestination } from "../scope/gateway-view.ts";
import {
  blackHoleCluster,
  capturedPorts,
  inboundClusterName,
  inboundPassthroughCluster,
  listenerName,
  passthroughCluster,
} from "../names/resource-names.ts";
import { accessLogs } from "./access-logs.ts";
import { inboundConnectionManager, outboundConnectionManager } from "./http-connection-manager.ts";
import {
  detectionTimeout,
  httpInspector,
  inboundFilterChains,
  portFilters,
  tlsInspector,
} from "./inbound-filter-chains.ts";
import { connectionStats, pack, socketAddress } from "./messages.ts";
import { statsConfig } from "./stats-config.ts";
import { tcpProxyFilters } from "./tcp-proxy-filters.ts";
import { plainHttpAlpn } from "./tls-context.ts";

/** A sidecar whose view says what is captured. */
export type CapturedOwn = SidecarOwn & { readonly captured: CapturedSidecar };

export function translateCapturedListeners(own: CapturedOwn): readonly Listener[] {
  const { outbound } = own.captured;
  return [
    virtualOutbound(own),
    ...outbound.httpPorts.map((port) => requestListener(own, port)),
    ...outbound.connections.map((each) => connectionListener(own, each)),
    virtualInbound(own),
  ];
}

/** At all addresses of the workload's families. */
function atAnyAddress({ captured: { anyAddresses } }: CapturedOwn, port: number) {
  const [first, ...others] = anyAddresses;
  return {
    address: socketAddress(first!, port),
    additionalAddresses: others.map((address) => ({ address: socketAddress(address, port) })),
  };
}

function transparent({ interceptionMode }: CapturedOwn): { readonly transparent?: true } {
  return interceptionMode === "TPROXY" ? { transparent: true } : {};
}

/** Hands each connection to the listener of its destination, and takes those that no other one has. */
function virtualOutbound(own: CapturedOwn): Listener {
  return create(ListenerSchema, {
    name: "virtualOutbound",
    ...atAnyAddress(own, capturedPorts.outbound),
    ...transparent(own),
    useOriginalDst: true,
    trafficDirection: TrafficDirection.OUTBOUND,
    filterChains: [blackHole("virtualOutbound-blackhole", capturedPorts.outbound), unknownDestination(own)],
  });
}

/** Who dials the proxy's own port would come back to it for ever. */
function blackHole(name: string, destinationPort: number): FilterChain {
  return create(FilterChainSchema, {
    name,
    filterChainMatch: { destinationPort },
    filters: tcpProxyFilters(blackHoleCluster, [{ cluster: blackHoleCluster, weight: 1 }], {
      telemetry: { accessLogs: [] },
    }),
  });
}

/** Of connections to addresses that are no Service's. */
function unknownDestination(own: CapturedOwn): FilterChain {
  const cluster = own.captured.outbound.registryOnly === true ? blackHoleCluster : passthroughCluster;
  return outboundConnections(own, "virtualOutbound-catchall-tcp", [{ cluster, weight: 1 }]);
}

function outboundConnections(
  own: CapturedOwn,
  name: string,
  destinations: readonly ConnectionDestination[],
): FilterChain {
  const telemetry = own.telemetry?.client;
  return create(FilterChainSchema, {
    name,
    filters: tcpProxyFilters(destinations[0]?.cluster ?? name, destinations, { telemetry }),
    ...connectionStats(statsConfig(telemetry)),
  });
}

/** Plain HTTP alone; all else that goes to such a port, the client's own TLS above all, is passed on. */
function outboundRequests(own: CapturedOwn, listener: string, routeName: string): FilterChain {
  const value = outboundConnectionManager(`outbound_${listener}`, routeName, own);
  return create(FilterChainSchema, {
    filterChainMatch: { transportProtocol: "raw_buffer", applicationProtocols: [...plainHttpAlpn] },
    filters: [connectionManagerFilter(value)],
  });
}

function connectionManagerFilter(value: ReturnType<typeof outboundConnectionManager>): Filter {
  const name = "envoy.filters.network.http_connection_manager";
  return create(FilterSchema, { name, configType: { case: "typedConfig", value } });
}

/** Whoever says nothing for a while waits for a server that speaks first. */
function inspected(own: CapturedOwn) {
  return {
    listenerFilters: [tlsInspector(), httpInspector()],
    ...detectionTimeout(own.protocolDetectionTimeoutMs),
  };
}

/** All requests to a port, to whatever address: hosts tell them apart. */
function requestListener(own: CapturedOwn, port: number): Listener {
  const name = listenerName(own.captured.anyAddresses[0]!, port);
  return create(ListenerSchema, {
    name,
    ...atAnyAddress(own, port),
    bindToPort: false,
    trafficDirection: TrafficDirection.OUTBOUND,
    ...inspected(own),
    filterChains: [outboundRequests(own, name, String(port))],
    defaultFilterChain: { ...unknownDestination(own), name: "PassthroughFilterChain" },
  });
}

/** Connections to one address of a Service whose port is not named HTTP. */
function connectionListener(own: CapturedOwn, captured: CapturedConnections): Listener {
  const { address, port, routeName, byServerName = [], destinations } = captured;
  const name = listenerName(address, port);
  const named = byServerName.map((each) =>
    create(FilterChainSchema, {
      ...outboundConnections(own, each.serverNames[0]!, each.destinations),
      filterChainMatch: create(FilterChainMatchSchema, { serverNames: [...each.serverNames] }),
    }),
  );
  const requests = routeName === undefined ? [] : [outboundRequests(own, name, routeName)];
  const detects = requests.length > 0 ? inspected(own) : { listenerFilters: named.length > 0 ? [tlsInspector()] : [] };
  return create(ListenerSchema, {
    name,
    address: socketAddress(address, port),
    bindToPort: false,
    trafficDirection: TrafficDirection.OUTBOUND,
    ...(named.length > 0 ? detectionTimeout(own.protocolDetectionTimeoutMs) : {}),
    ...detects,
    filterChains: [...named, ...requests],
    defaultFilterChain: outboundConnections(own, name, destinations),
  });
}

/** What one port of the workload, or all others, take. */
interface InboundTraffic {
  /** Undefined = every other one. */
  readonly port: number | undefined;
  readonly chains: ReturnType<typeof inboundFilterChains>;
}

/** Every connection to the workload: by its port, and by its transport and protocol where that is open. */
function virtualInbound(own: CapturedOwn): Listener {
  const { captured, telemetry } = own;
  const ports = [...own.inbound, ...captured.otherPorts];
  const traffic = ports.map((port) => inboundTraffic(own, port));
  const hasMutualTls = ports.some(({ mutualTls }) => mutualTls !== undefined);
  return create(ListenerSchema, {
    name: "virtualInbound",
    ...atAnyAddress(own, capturedPorts.inbound),
    ...transparent(own),
    trafficDirection: TrafficDirection.INBOUND,
    accessLog:
      hasMutualTls && telemetry?.withoutListenerLog !== true
        ? accessLogs("turned away", { telemetry: telemetry?.server })
        : [],
    listenerFilters: [originalDst(), ...inspectors(traffic)],
    ...detectionTimeout(own.protocolDetectionTimeoutMs),
    filterChains: [
      blackHole("virtualInbound-blackhole", capturedPorts.inbound),
      ...captured.refusedPorts.map((port) => blackHole(`refused_${port}`, port)),
      ...traffic.flatMap(({ port, chains }) => chains.filterChains.map((chain) => chainOfPort(chain, port))),
    ],
  });
}

function inboundTraffic(own: CapturedOwn, port: InboundPort | CapturedSidecar["otherPorts"][number]): InboundTraffic {
  const named = "targetPort" in port ? port : undefined;
  const number = named?.targetPort ?? (port as CapturedSidecar["otherPorts"][number]).port;
  const cluster = named === undefined ? inboundPassthroughCluster : inboundClusterName(named.targetPort);
  const statPrefix = named === undefined ? inboundPassthroughCluster : `inbound_${listenerName("0.0.0.0", number!)}`;
  const manager = (): Filter => connectionManagerFilter(inboundConnectionManager(statPrefix, named ?? cluster, own));
  const filters = portFilters(named?.protocol ?? "auto", manager, () =>
    tcpProxyFilters(cluster, [{ cluster, weight: 1 }], { ...own, telemetry: own.telemetry?.server }),
  );
  const chains = inboundFilterChains(filters, {
    mutualTls: port.mutualTls,
    detectionTimeoutMs: own.protocolDetectionTimeoutMs,
    stats: statsConfig(own.telemetry?.server),
  });
  return { port: number, chains };
}

function chainOfPort(chain: FilterChain, port: number | undefined): FilterChain {
  const isHttp = chain.filters.at(-1)!.name.endsWith("http_connection_manager");
  const name =
    port !== undefined ? listenerName("0.0.0.0", port) : isHttp ? "virtualInbound-catchall-http" : "virtualInbound";
  chain.name = name;
  if (port !== undefined) {
    chain.filterChainMatch ??= create(FilterChainMatchSchema);
    chain.filterChainMatch.destinationPort = port;
  }
  return chain;
}

/** Each inspector that some traffic needs; not at ports that have no use for it, where a server may speak first. */
function inspectors(traffic: readonly InboundTraffic[]): readonly ListenerFilter[] {
  return [tlsInspector(), httpInspector()].flatMap((inspector) => {
    const uses = ({ chains }: InboundTraffic): boolean =>
      chains.listenerFilters.some(({ name }) => name === inspector.name);
    if (!traffic.some(uses)) return [];
    const without = traffic.filter((each) => each.port !== undefined && !uses(each)).map(({ port }) => port!);
    if (without.length === 0) return [inspector];
    return [create(ListenerFilterSchema, { ...inspector, filterDisabled: oneOf(without) })];
  });
}

function oneOf(ports: readonly number[]): ListenerFilterChainMatchPredicate {
  const rules = ports.map((port) =>
    create(ListenerFilterChainMatchPredicateSchema, {
      rule: { case: "destinationPortRange", value: { start: port, end: port + 1 } },
    }),
  );
  return rules.length === 1
    ? rules[0]!
    : create(ListenerFilterChainMatchPredicateSchema, { rule: { case: "orMatch", value: { rules } } });
}

function originalDst(): ListenerFilter {
  return create(ListenerFilterSchema, {
    name: "envoy.filters.listener.original_dst",
    configType: { case: "typedConfig", value: pack(OriginalDstSchema, {}) },
  });
}
