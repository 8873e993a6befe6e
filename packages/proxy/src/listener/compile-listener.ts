// A listener resource into addresses and filter chains (config.listener.v3.Listener).
import { isIP } from "node:net";
import { toJsonString } from "@bufbuild/protobuf";
import { TrafficDirection } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { Address } from "@tulle/xds/envoy/config/core/v3/address_pb";
import type { Listener as ListenerMessage } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import {
  type FilterChain as FilterChainMessage,
  FilterChainMatchSchema,
} from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import type { NetworkFilter, TerminalNetworkFilter } from "./network-filter.ts";
import { statsOptions } from "../filters/http/istio-stats/istio-stats-registration.ts";
import { readPluginJson } from "../filters/http/istio-stats/plugin-config.ts";
import { IstioTcpStatsFilter, istioTcpStatsKey } from "../filters/network/istio-tcp-stats/istio-tcp-stats-filter.ts";
import type { ListenerFilter } from "../filters/listener/listener-filter.ts";
import { originalDstFilter } from "../filters/listener/original-dst/original-dst.ts";
import { protocolReader } from "../filters/listener/tls-inspector/tls-inspector.ts";
import { networkFilterOfType } from "../filters/network/table.ts";
import type { ConnectionProperties, FilterChain, ListenAddress, Listener } from "./listener.ts";
import type { SecretSlot } from "../tls/secret-slot.ts";
import { checkFields } from "../fields/check-fields.ts";
import { compileAccessLog } from "../fields/compile-access-log.ts";
import { compileDownstreamTransport } from "../compile/compile-downstream-tls.ts";
import { type ChainCriteria, compileChainCriteria, findChain } from "./compile-filter-chain-match.ts";
import { compileListenerFilters } from "./compile-listener-filters.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import type { ListenerBuild, ListenerOptions, RouteSubscription } from "./listener-build.ts";
import { durationMs } from "../fields/duration.ts";
import { redactedNamesOf } from "../format/redacted-names.ts";
import { type Compiled, Place, Problems, compiled } from "../fields/problems.ts";
import { unwrapTypedConfig } from "../fields/typed-config.ts";
import { listenerMessage } from "./listener-fields.ts";
import { makeListenerStats } from "./listener-stats.ts";

const defaultBufferLimitBytes = 1024 * 1024;
const defaultListenerFiltersTimeoutMs = 15_000;

export interface CompiledListener {
  readonly listener: Listener;
  /** Route configurations that come by RDS, by name: the listener is warm once they have. */
  readonly routes: ReadonlyMap<string, RouteSubscription>;
  /** Clusters that its inline route tables may choose. */
  readonly clusterNames: ReadonlySet<string>;
  /** Secrets of its filter chains and filters: the listener is warm once they have come. */
  readonly secretSlots: ReadonlySet<SecretSlot>;
}

export function compileListener(
  message: ListenerMessage,
  scope: CompileScope,
  options: ListenerOptions = {},
): Compiled<CompiledListener> {
  const problems = new Problems();
  return compiled(buildListener(message, scope, options, Place.root, problems), problems);
}

function buildListener(
  message: ListenerMessage,
  shared: CompileScope,
  options: ListenerOptions,
  place: Place,
  problems: Problems,
): CompiledListener | undefined {
  const metadata = message.metadata?.filterMetadata ?? {};
  const scope = { ...shared, redactedNames: redactedNamesOf(metadata) };
  checkFields(listenerMessage, message, place, problems);
  const addresses = [
    compileAddress(message.address, place.field("address"), problems),
    ...message.additionalAddresses.map((additional, index) =>
      compileAddress(additional.address, place.field("additional_addresses", index), problems),
    ),
  ];
  const accessLogs = message.accessLog.map((log, index) =>
    compileAccessLog(log, scope, place.field("access_log", index), problems),
  );
  const statName = listenerStatName(message.statPrefix, addresses[0]);
  const build: ListenerBuild = {
    scope,
    problems,
    options,
    isInbound: message.trafficDirection === TrafficDirection.INBOUND,
    isOutbound: message.trafficDirection === TrafficDirection.OUTBOUND,
    statName,
    routes: new Map(),
    clusterNames: new Set(),
    secretSlots: new Set(),
  };
  const filterChains = buildFilterChains(message, build, place);
  const defaultChain = message.defaultFilterChain;
  const defaultLinks =
    defaultChain === undefined ? undefined : buildLinks(defaultChain, build, place.field("default_filter_chain"));
  if (message.filterChains.length === 0 && defaultChain === undefined) {
    problems.error(place, `error adding listener '${message.name}': no filter chains specified`);
  }
  if (problems.hasErrors) return undefined;
  const name = message.name === "" ? addresses.map((address) => `${address?.ip}_${address?.port}`)[0]! : message.name;
  const listenerFilters = compileListenerFilters(message.listenerFilters, scope, place, problems);
  const usesOriginalDst = message.useOriginalDst === true;
  const chains = [...filterChains, ...(defaultLinks === undefined ? [] : [defaultLinks])];
  const listener: Listener = {
    name,
    metadata,
    addresses: addresses.filter((address) => address !== undefined),
    filterChains,
    defaultFilterChain:
      defaultLinks === undefined ? undefined : { ...namesOf(defaultChain!), matches: () => true, ...defaultLinks },
    listenerFilters: [
      ...listenerFilters,
      ...(needsProtocols(chains, listenerFilters) ? [protocolReader] : []),
      // As in Envoy the last, whether the list has one or not.
      ...(usesOriginalDst ? [originalDstFilter()] : []),
    ],
    listenerFiltersTimeoutMs: durationMs(message.listenerFiltersTimeout, defaultListenerFiltersTimeoutMs),
    continuesAfterListenerFiltersTimeout: message.continueOnListenerFiltersTimeout,
    accessLogs: accessLogs.filter((log) => log !== undefined),
    perConnectionBufferLimitBytes: message.perConnectionBufferLimitBytes ?? defaultBufferLimitBytes,
    usesOriginalDst,
    bindToPort: message.bindToPort ?? message.deprecatedV1?.bindToPort ?? true,
    stats: makeListenerStats(scope.metrics, statName),
  };
  if (problems.hasErrors) return undefined;
  return { listener, routes: build.routes, clusterNames: build.clusterNames, secretSlots: build.secretSlots };
}

function needsProtocols(chains: readonly ChainLinks[], filters: readonly ListenerFilter[]): boolean {
  const transports = chains.map(({ transport }) => transport);
  return (
    filters.every(({ inspector }) => inspector === undefined) &&
    transports.every(({ type }) => type === "tls") &&
    transports.some((transport) => transport.type === "tls" && transport.context.alpnProtocols.length > 0)
  );
}

function listenerStatName(statPrefix: string, address: ListenAddress | undefined): string {
  return statPrefix !== "" ? statPrefix : `${address?.ip}_${address?.port}`;
}

function compileAddress(message: Address | undefined, place: Place, problems: Problems): ListenAddress | undefined {
  const address = message?.address;
  if (address?.case !== "socketAddress") {
    problems.error(place, "a socket_address is required");
    return undefined;
  }
  const socket = address.value;
  const at = place.field("socket_address");
  if (socket.protocol !== 0) problems.error(at.field("protocol"), "only TCP is supported");
  if (isIP(socket.address) === 0) problems.error(at.field("address"), `malformed IP address: ${socket.address}`);
  if (socket.portSpecifier.case !== "portValue" || socket.portSpecifier.value > 65_535) {
    problems.error(at.field("port_value"), "a port from 0 to 65535 is required");
    return undefined;
  }
  const { address: ip, portSpecifier, ipv4Compat } = socket;
  return { ip, port: portSpecifier.value, ...(ipv4Compat && { takesIpv4: true }) };
}

const namesOf = ({ name, metadata }: FilterChainMessage) => ({ name, metadata: metadata?.filterMetadata ?? {} });

function buildFilterChains(message: ListenerMessage, build: ListenerBuild, place: Place): FilterChain[] {
  const { problems } = build;
  const criteria: ChainCriteria[] = [];
  const chains: (ChainLinks & ReturnType<typeof namesOf>)[] = [];
  const seen = new Map<string, string>();
  for (const [index, chain] of message.filterChains.entries()) {
    const at = place.field("filter_chains", index);
    const match = chain.filterChainMatch;
    const text = match === undefined ? "{}" : toJsonString(FilterChainMatchSchema, match);
    const twin = seen.get(text);
    if (twin !== undefined) {
      const words = `filter chain '${chain.name}' has the same matching rules defined as '${twin}'`;
      problems.error(at, `error adding listener '${message.name}': ${words}. duplicate matcher is: ${text}`);
    }
    seen.set(text, chain.name);
    criteria.push(compileChainCriteria(match, at.field("filter_chain_match"), problems));
    const links = buildLinks(chain, build, at);
    if (links !== undefined) chains.push({ ...namesOf(chain), ...links });
  }
  if (chains.length !== criteria.length) return [];
  const find = chainFinder(criteria);
  return chains.map((chain, index) => ({ ...chain, matches: (connection) => find(connection) === index }));
}

/** Chains are asked one after another about the same connection: the search runs once for it. */
function chainFinder(criteria: readonly ChainCriteria[]): (connection: ConnectionProperties) => number {
  let last: ConnectionProperties | undefined;
  let found = -1;
  return (connection) => {
    if (connection !== last) {
      last = connection;
      found = findChain(criteria, connection);
    }
    return found;
  };
}

/** What a connection passes once its chain has been found. */
type ChainLinks = Pick<FilterChain, "transport" | "networkFilters" | "network">;

function buildLinks(chain: FilterChainMessage, build: ListenerBuild, place: Place): ChainLinks | undefined {
  const { problems } = build;
  const transport = compileDownstreamTransport(chain, build, place);
  const networkFilters: NetworkFilter[] = chainStats(chain, place, build);
  let network: TerminalNetworkFilter | undefined;
  for (const [index, filter] of chain.filters.entries()) {
    const at = place.field("filters", index);
    const isLast = index === chain.filters.length - 1;
    const config = filter.configType.case === "typedConfig" ? unwrapTypedConfig(filter.configType.value) : undefined;
    const registration = config && networkFilterOfType(config.typeUrl);
    if (config === undefined || registration === undefined) {
      const type = config?.typeUrl.replace(/^.*\//, "") ?? "";
      problems.error(at, `Didn't find a registered implementation for '${filter.name}' with type URL: '${type}'`);
      continue;
    }
    if (registration.isTerminal !== isLast) problems.error(at, orderFault(filter.name, registration.isTerminal));
    const filterBuild = { name: filter.name, listener: build, place: at.field("typed_config") };
    if (registration.isTerminal) {
      network = registration.compile(config, filterBuild);
    } else {
      const compiledFilter = registration.compile(config, filterBuild);
      if (compiledFilter !== undefined) networkFilters.push(compiledFilter);
    }
  }
  if (chain.filters.length === 0) problems.error(place.field("filters"), "a terminal network filter is required");
  return network && { transport, networkFilters, network };
}

/** What the chain's metadata asks for, which a stock Envoy does not read. */
function chainStats({ metadata }: FilterChainMessage, place: Place, build: ListenerBuild): NetworkFilter[] {
  const asked = metadata?.filterMetadata[istioTcpStatsKey];
  if (asked === undefined) return [];
  const { scope, isInbound, problems } = build;
  const at = place.field("metadata").key("filter_metadata", istioTcpStatsKey);
  const plugin = readPluginJson(asked, at, problems);
  const reporter = plugin.reporter === "SERVER_GATEWAY" ? "waypoint" : isInbound ? "destination" : "source";
  return [new IstioTcpStatsFilter({ ...statsOptions(plugin, scope, at, problems), reporter })];
}

function orderFault(name: string, isTerminal: boolean): string {
  return isTerminal
    ? `Error: terminal filter named ${name} of type ${name} must be the last filter in a network filter chain.`
    : `Error: non-terminal filter named ${name} of type ${name} is the last filter in a network filter chain.`;
}
