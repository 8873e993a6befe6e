// Which filter chain takes a connection: Envoy's order of criteria, each narrowing to the most specific, without going
// back (config.listener.v3.FilterChainMatch).
import {
  type FilterChainMatch,
  FilterChainMatch_ConnectionSourceType as SourceType,
} from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import type { ConnectionProperties } from "./listener.ts";
import { type CompiledCidr, compileCidr } from "../fields/cidr.ts";
import type { Place, Problems } from "../fields/problems.ts";

export interface ChainCriteria {
  readonly destinationPort: number | undefined;
  readonly destinationRanges: readonly CompiledCidr[];
  readonly serverNames: readonly string[];
  readonly transportProtocol: string;
  readonly applicationProtocols: readonly string[];
  readonly directSourceRanges: readonly CompiledCidr[];
  readonly sourceType: number;
  readonly sourceRanges: readonly CompiledCidr[];
  readonly sourcePorts: readonly number[];
}

export function compileChainCriteria(
  match: FilterChainMatch | undefined,
  place: Place,
  problems: Problems,
): ChainCriteria {
  const ranges = (list: FilterChainMatch["prefixRanges"] | undefined, name: string): CompiledCidr[] =>
    (list ?? []).map((range, index) => compileCidr(range, place.field(name, index), problems));
  for (const [index, name] of (match?.serverNames ?? []).entries()) {
    if (!name.includes("*") || /^\*\.[^*]+$/.test(name)) continue;
    problems.error(place.field("server_names", index), `partial wildcards are not supported in server_names: ${name}`);
  }
  return {
    destinationPort: match?.destinationPort,
    destinationRanges: ranges(match?.prefixRanges, "prefix_ranges"),
    serverNames: (match?.serverNames ?? []).map((name) => name.toLowerCase()),
    transportProtocol: match?.transportProtocol ?? "",
    applicationProtocols: match?.applicationProtocols ?? [],
    directSourceRanges: ranges(match?.directSourcePrefixRanges, "direct_source_prefix_ranges"),
    sourceType: match?.sourceType ?? SourceType.ANY,
    sourceRanges: ranges(match?.sourcePrefixRanges, "source_prefix_ranges"),
    sourcePorts: match?.sourcePorts ?? [],
  };
}

/** How well a chain fits one criterion: 0 = it does not ask, more = more specific, -1 = it asks for something else. */
type Fit = (criteria: ChainCriteria, connection: ConnectionProperties) => number;

function rangeFit(ranges: readonly CompiledCidr[], ip: string): number {
  if (ranges.length === 0) return 0;
  let best = -1;
  for (const range of ranges) if (range.contains(ip)) best = Math.max(best, range.prefixLength + 1);
  return best;
}

function serverNameFit(names: readonly string[], serverName: string): number {
  if (names.length === 0) return 0;
  const lower = serverName.toLowerCase();
  let best = -1;
  for (const name of names) {
    if (name === lower) return Number.MAX_SAFE_INTEGER;
    if (name.startsWith("*.") && lower.endsWith(name.slice(1))) best = Math.max(best, name.length);
  }
  return best;
}

function listFit<T>(list: readonly T[], matches: (item: T) => boolean): number {
  if (list.length === 0) return 0;
  return list.some(matches) ? 1 : -1;
}

/** The client's order decides which of several chains takes it. */
function protocolFit(asked: readonly string[], offered: readonly string[]): number {
  if (asked.length === 0) return 0;
  const index = offered.findIndex((protocol) => asked.includes(protocol));
  return index < 0 ? -1 : offered.length - index;
}

function isLocalConnection(connection: ConnectionProperties): boolean {
  return (
    connection.localIp === connection.remoteIp ||
    connection.remoteIp.startsWith("127.") ||
    connection.remoteIp === "::1"
  );
}

const fits: readonly Fit[] = [
  (chain, connection) =>
    chain.destinationPort === undefined ? 0 : chain.destinationPort === connection.localPort ? 1 : -1,
  (chain, connection) => rangeFit(chain.destinationRanges, connection.localIp),
  (chain, connection) => serverNameFit(chain.serverNames, connection.serverName),
  (chain, connection) =>
    chain.transportProtocol === "" ? 0 : chain.transportProtocol === connection.transportProtocol ? 1 : -1,
  (chain, connection) => protocolFit(chain.applicationProtocols, connection.applicationProtocols),
  (chain, connection) => rangeFit(chain.directSourceRanges, connection.directRemoteIp),
  (chain, connection) => {
    if (chain.sourceType === SourceType.ANY) return 0;
    return (chain.sourceType === SourceType.SAME_IP_OR_LOOPBACK) === isLocalConnection(connection) ? 1 : -1;
  },
  (chain, connection) => rangeFit(chain.sourceRanges, connection.remoteIp),
  (chain, connection) => listFit(chain.sourcePorts, (port) => port === connection.remotePort),
];

/** Index of the chain that takes the connection, -1 for none. */
export function findChain(chains: readonly ChainCriteria[], connection: ConnectionProperties): number {
  let candidates = chains.map((_, index) => index);
  for (const fit of fits) {
    let best = -1;
    let narrowed: number[] = [];
    for (const index of candidates) {
      const score = fit(chains[index]!, connection);
      if (score < 0 || score < best) continue;
      if (score > best) narrowed = [];
      best = score;
      narrowed.push(index);
    }
    candidates = narrowed;
  }
  return candidates[0] ?? -1;
}
