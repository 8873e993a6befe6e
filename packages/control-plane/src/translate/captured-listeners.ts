// Views → listeners of a sidecar to which the kernel redirects its workload's connections (interceptionMode REDIRECT,
// TPROXY), by Istio's names: `virtualOutbound` and `virtualInbound` are bound, the others get what the first hands
// over.
import { create } from "@bufbuild/protobuf";
import {
  type FilterChain,
  FilterChainMatchSchema,
  FilterChainSchema,
  type ListenerFilter,
  type ListenerFilterChainMatchPredicate,
  ListenerFilterChainMatchPredicateSchema,
  ListenerFilterSchema,
} from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { type Listener, ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { type CidrRange, CidrRangeSchema } from "@tulle/xds/envoy/config/core/v3/address_pb";
import { TrafficDirection } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type {
  CapturedConnections,
  CapturedOutbound,
  CapturedRange,
  CapturedSidecar,
  SidecarOwn,
} from "../scope/proxy-view.ts";
import { isOfFamilies } from "../scope/captured-sidecar.ts";
import type { ConnectionDestination } from "../scope/gateway-view.ts";
import { blackHoleCluster, capturedPorts, listenerName, passthroughCluster } from "../names/resource-names.ts";
import { outboundConnectionManager } from "./http-connection-manager.ts";
import { detectionTimeout, type InboundChains } from "./inbound-filter-chains.ts";
import { inboundTraffic, passthroughTarget, targetOfPort, turnedAwayLogs } from "./inbound-traffic.ts";
import { httpInspector, originalDst, originalSrc, tlsInspector } from "./listener-filters.ts";
import { connectionStats, socketAddress } from "./messages.ts";
import { statsConfig } from "./stats-config.ts";
import { tcpProxyFilters } from "./tcp-proxy-filters.ts";
import { plainHttpAlpn } from "./tls-context.ts";

/** A sidecar whose view says what is captured. */
export type CapturedOwn = SidecarOwn & { readonly captured: CapturedSidecar };

export function translateCapturedListeners(own: CapturedOwn): readonly Listener[] {
  const { outbound, podConnections = [] } = own.captured;
  const ofServices = new Set(outbound.connections.map(({ address, port }) => listenerName(address, port)));
  const ofPods = podConnections.filter(({ address, port }) => !ofServices.has(listenerName(address, port)));
  return [
    virtualOutbound(own),
    ...sharedPorts(outbound).map((port) => sharedListener(own, port)),
    ...[...outbound.connections, ...ofPods]
      .filter(({ address }) => isOfFamilies(own.captured.anyAddresses, address))
      .map((each) => connectionListener(own, each)),
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
function outboundRequests(own: CapturedOwn, listener: string, routeName: string, range?: string): FilterChain {
  return create(FilterChainSchema, {
    filterChainMatch: {
      transportProtocol: "raw_buffer",
      applicationProtocols: [...plainHttpAlpn],
      prefixRanges: cidrRanges(range),
    },
    filters: [outboundConnectionManager(`outbound_${listener}`, routeName, own)],
  });
}

function cidrRanges(range: string | undefined): CidrRange[] {
  if (range === undefined) return [];
  const [addressPrefix = "", length = ""] = range.split("/");
  return [create(CidrRangeSchema, { addressPrefix, prefixLen: Number(length) })];
}

/** Whoever says nothing for a while waits for a server that speaks first. */
function inspected(own: CapturedOwn, listenerFilters: ListenerFilter[]) {
  return listenerFilters.length === 0 ? {} : { listenerFilters, ...detectionTimeout(own.protocolDetectionTimeoutMs) };
}

/** Ports at which no address of its own tells what is meant. */
function sharedPorts({ httpPorts, ranges = [] }: CapturedOutbound): readonly number[] {
  return [...new Set([...httpPorts, ...ranges.map(({ port }) => port)])].sort((a, b) => a - b);
}

/**
 * All that goes to a port, but for addresses that have a listener: hosts tell requests apart, ranges and server names
 * connections. Requests stay requests within a range, or who has it would have them past the rules of all hosts.
 */
function sharedListener(own: CapturedOwn, port: number): Listener {
  const { httpPorts, ranges = [] } = own.captured.outbound;
  const name = listenerName(own.captured.anyAddresses[0]!, port);
  const hasRequests = httpPorts.includes(port);
  const ofPort = ranges.filter((each) => each.port === port);
  const apart = ofPort.filter(({ range, serverNames }) => range !== undefined || serverNames.length > 0);
  const rest = ofPort.find((each) => !apart.includes(each));
  const places = hasRequests ? [undefined, ...new Set(apart.flatMap(({ range }) => range ?? []))] : [];
  const hasNames = apart.some(({ serverNames }) => serverNames.length > 0);
  return create(ListenerSchema, {
    name,
    ...atAnyAddress(own, port),
    bindToPort: false,
    trafficDirection: TrafficDirection.OUTBOUND,
    ...inspected(own, hasRequests ? [tlsInspector(), httpInspector()] : hasNames ? [tlsInspector()] : []),
    filterChains: [
      ...apart.map((each) => rangeConnections(own, each)),
      ...places.map((range) => outboundRequests(own, name, String(port), range)),
    ],
    defaultFilterChain:
      rest === undefined
        ? { ...unknownDestination(own), name: "PassthroughFilterChain" }
        : outboundConnections(own, name, rest.destinations),
  });
}

function rangeConnections(own: CapturedOwn, { range, serverNames, destinations }: CapturedRange): FilterChain {
  return create(FilterChainSchema, {
    ...outboundConnections(own, [range, ...serverNames].filter((each) => each !== undefined).join(" "), destinations),
    filterChainMatch: create(FilterChainMatchSchema, {
      serverNames: [...serverNames],
      prefixRanges: cidrRanges(range),
    }),
  });
}

/** Connections to one address of a Service, or of a pod, whose port is not named HTTP. */
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
  return create(ListenerSchema, {
    name,
    address: socketAddress(address, port),
    bindToPort: false,
    trafficDirection: TrafficDirection.OUTBOUND,
    ...inspected(
      own,
      requests.length > 0 ? [tlsInspector(), httpInspector()] : named.length > 0 ? [tlsInspector()] : [],
    ),
    filterChains: [...named, ...requests],
    defaultFilterChain: outboundConnections(own, name, destinations),
  });
}

/** What one port of the workload, or all others, take. */
interface PortTraffic {
  /** Undefined = every other one. */
  readonly port: number | undefined;
  readonly chains: InboundChains;
}

/** Every connection to the workload: by its port, and by its transport and protocol where that is open. */
function virtualInbound(own: CapturedOwn): Listener {
  const { captured, inbound } = own;
  const { otherPorts, refusedPorts } = captured;
  const traffic: readonly PortTraffic[] = [
    ...inbound.map((each) => {
      const statPrefix = `inbound_${portName(each.targetPort)}`;
      return { port: each.targetPort, chains: inboundTraffic(own, targetOfPort(each), statPrefix, each.mutualTls) };
    }),
    ...otherPorts.map(({ port, mutualTls }) => ({
      port,
      chains: inboundTraffic(own, passthroughTarget, passthroughTarget.cluster, mutualTls),
    })),
  ];
  return create(ListenerSchema, {
    name: "virtualInbound",
    ...atAnyAddress(own, capturedPorts.inbound),
    ...transparent(own),
    trafficDirection: TrafficDirection.INBOUND,
    accessLog: turnedAwayLogs(own, [...inbound, ...otherPorts]),
    listenerFilters: [
      originalDst(),
      ...(own.interceptionMode === "TPROXY" ? [originalSrc()] : []),
      ...inspectors(traffic),
    ],
    ...detectionTimeout(own.protocolDetectionTimeoutMs),
    filterChains: [
      blackHole("virtualInbound-blackhole", capturedPorts.inbound),
      ...refusedPorts.map((port) => blackHole(`refused_${port}`, port)),
      ...traffic.flatMap(({ port, chains }) => chains.filterChains.map((chain) => chainOfPort(chain, port))),
    ],
  });
}

function portName(port: number): string {
  return listenerName("0.0.0.0", port);
}

function chainOfPort(chain: FilterChain, port: number | undefined): FilterChain {
  const isHttp = chain.filters.at(-1)!.name.endsWith("http_connection_manager");
  const name = port !== undefined ? portName(port) : isHttp ? "virtualInbound-catchall-http" : "virtualInbound";
  chain.name = name;
  if (port !== undefined) {
    chain.filterChainMatch ??= create(FilterChainMatchSchema);
    chain.filterChainMatch.destinationPort = port;
  }
  return chain;
}

/** Each inspector that some traffic needs; not at ports that have no use for it, where a server may speak first. */
function inspectors(traffic: readonly PortTraffic[]): readonly ListenerFilter[] {
  return [tlsInspector(), httpInspector()].flatMap((inspector) => {
    const uses = ({ chains }: PortTraffic): boolean =>
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
