// A listener resource into addresses and filter chains (config.listener.v3.Listener).
import { isIP } from "node:net";
import { TrafficDirection } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { Address } from "@tulle/xds/envoy/config/core/v3/address_pb";
import type { Listener as ListenerMessage } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { checkFields } from "../fields/check-fields.ts";
import { compileAccessLog } from "../fields/compile-access-log.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import { durationMs } from "../fields/duration.ts";
import { type Compiled, Place, Problems, compiled } from "../fields/problems.ts";
import type { ListenerFilter } from "../filters/listener/listener-filter.ts";
import { originalDstFilter } from "../filters/listener/original-dst/original-dst.ts";
import { protocolReader } from "../filters/listener/tls-inspector/tls-inspector.ts";
import { redactedNamesOf } from "../format/redacted-names.ts";
import type { SecretSlot } from "../tls/secret-slot.ts";
import { compileFilterChains } from "./compile-filter-chains.ts";
import { compileListenerFilters } from "./compile-listener-filters.ts";
import type { CompiledChains, ListenerBuild, ListenerOptions, RouteSubscription } from "./listener-build.ts";
import { listenerMessage } from "./listener-fields.ts";
import { makeListenerStats } from "./listener-stats.ts";
import type { FilterChain, ListenAddress, Listener } from "./listener.ts";

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
  readonly chains: CompiledChains;
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
  const isTransparent = message.transparent === true;
  const addressAt = (address: Address | undefined, at: Place): ListenAddress | undefined => {
    const compiledAddress = compileAddress(address, at, problems);
    return compiledAddress && (isTransparent ? { ...compiledAddress, isTransparent } : compiledAddress);
  };
  const addresses = [
    addressAt(message.address, place.field("address")),
    ...message.additionalAddresses.map(({ address }, index) =>
      addressAt(address, place.field("additional_addresses", index)),
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
    isTransparent,
    isInbound: message.trafficDirection === TrafficDirection.INBOUND,
    isOutbound: message.trafficDirection === TrafficDirection.OUTBOUND,
    statName,
    routes: new Map(),
    clusterNames: new Set(),
    secretSlots: new Set(),
  };
  const chains = compileFilterChains(message, build, place);
  if (chains === undefined) return undefined;
  const { filterChains, findChain } = chains;
  const name = message.name === "" ? addresses.map((address) => `${address?.ip}_${address?.port}`)[0]! : message.name;
  const listenerFilters = compileListenerFilters(message.listenerFilters, build, place);
  const usesOriginalDst = message.useOriginalDst === true;
  const listener: Listener = {
    name,
    metadata,
    addresses: addresses.filter((address) => address !== undefined),
    filterChains,
    findChain,
    listenerFilters: [
      ...listenerFilters,
      ...(needsProtocols(filterChains, listenerFilters) ? [protocolReader] : []),
      // As in Envoy the last, whether the list has one or not.
      ...(usesOriginalDst ? [originalDstFilter(isTransparent)] : []),
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
  const { routes, clusterNames, secretSlots } = build;
  return { listener, routes, clusterNames, secretSlots, chains: chains.compiled };
}

function needsProtocols(chains: readonly FilterChain[], filters: readonly ListenerFilter[]): boolean {
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
