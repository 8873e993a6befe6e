// The filter chains of a listener, and which of them takes a connection. A chain that says what it said before is the
// same object as before, so that its connections go on when others change (Envoy: an update of filter chains alone).
import { hash } from "node:crypto";
import { toBinary, toJsonString } from "@bufbuild/protobuf";
import { type Listener as ListenerMessage, ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import {
  type FilterChain as FilterChainMessage,
  FilterChainMatchSchema,
  FilterChainSchema,
} from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { compileDownstreamTransport } from "../compile/compile-downstream-tls.ts";
import type { Place } from "../fields/problems.ts";
import { unwrapTypedConfig } from "../fields/typed-config.ts";
import { statsOptions } from "../filters/http/istio-stats/istio-stats-registration.ts";
import { readPluginJson } from "../filters/http/istio-stats/plugin-config.ts";
import { IstioTcpStatsFilter, istioTcpStatsKey } from "../filters/network/istio-tcp-stats/istio-tcp-stats-filter.ts";
import { networkFilterOfType } from "../filters/network/table.ts";
import { type ChainCriteria, compileChainCriteria, findChain } from "./compile-filter-chain-match.ts";
import type { CompiledChain, CompiledChains, ListenerBuild } from "./listener-build.ts";
import type { FilterChain, Listener } from "./listener.ts";
import type { NetworkFilter, TerminalNetworkFilter } from "./network-filter.ts";

type Found = Pick<ListenerBuild, "routes" | "clusterNames" | "secretSlots">;

type Chains = Pick<Listener, "filterChains" | "findChain"> & {
  readonly compiled: CompiledChains;
};

/** Undefined after an error. */
export function compileFilterChains(message: ListenerMessage, build: ListenerBuild, place: Place): Chains | undefined {
  const { problems, options } = build;
  const frame = textOf(toBinary(ListenerSchema, { ...message, filterChains: [], defaultFilterChain: undefined }));
  const former = options.former?.frame === frame ? options.former.byText : undefined;
  const byText = new Map<string, CompiledChain>();
  const chainOf = (chain: FilterChainMessage, kind: "matched" | "default", at: Place): FilterChain | undefined => {
    const text = `${kind} ${textOf(toBinary(FilterChainSchema, chain))}`;
    const compiled = former?.get(text) ?? compileAlone(chain, build, at);
    if (compiled === undefined) return undefined;
    byText.set(text, compiled);
    for (const [name, subscription] of compiled.routes) build.routes.set(name, subscription);
    for (const name of compiled.clusterNames) build.clusterNames.add(name);
    for (const slot of compiled.secretSlots) build.secretSlots.add(slot);
    return compiled.chain;
  };
  checkMatches(message, build, place);
  const criteria: ChainCriteria[] = [];
  const filterChains: FilterChain[] = [];
  for (const [index, each] of message.filterChains.entries()) {
    const at = place.field("filter_chains", index);
    criteria.push(compileChainCriteria(each.filterChainMatch, at.field("filter_chain_match"), problems));
    const chain = chainOf(each, "matched", at);
    if (chain !== undefined) filterChains.push(chain);
  }
  const otherwise = message.defaultFilterChain;
  const defaultFilterChain =
    otherwise === undefined ? undefined : chainOf(otherwise, "default", place.field("default_filter_chain"));
  if (message.filterChains.length === 0 && otherwise === undefined) {
    problems.error(place, `error adding listener '${message.name}': no filter chains specified`);
  }
  if (problems.hasErrors) return undefined;
  return {
    filterChains: defaultFilterChain === undefined ? filterChains : [...filterChains, defaultFilterChain],
    findChain: (connection) => filterChains[findChain(criteria, connection)] ?? defaultFilterChain,
    compiled: { frame, byText },
  };
}

function textOf(bytes: Uint8Array): string {
  return hash("sha256", bytes, "base64");
}

function checkMatches(message: ListenerMessage, { problems }: ListenerBuild, place: Place): void {
  const seen = new Map<string, string>();
  for (const [index, { name, filterChainMatch }] of message.filterChains.entries()) {
    const text = filterChainMatch === undefined ? "{}" : toJsonString(FilterChainMatchSchema, filterChainMatch);
    const twin = seen.get(text);
    if (twin !== undefined) {
      const reason = `filter chain '${name}' has the same matching rules defined as '${twin}'`;
      const words = `error adding listener '${message.name}': ${reason}. duplicate matcher is: ${text}`;
      problems.error(place.field("filter_chains", index), words);
    }
    seen.set(text, name);
  }
}

/** With what it alone adds to its listener's lists. */
function compileAlone(message: FilterChainMessage, build: ListenerBuild, place: Place): CompiledChain | undefined {
  const found: Found = { routes: new Map(), clusterNames: new Set(), secretSlots: new Set() };
  const chain = compileChain(message, { ...build, ...found }, place);
  return chain && { chain, ...found };
}

function compileChain(chain: FilterChainMessage, build: ListenerBuild, place: Place): FilterChain | undefined {
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
  if (network === undefined) return undefined;
  const { name, metadata } = chain;
  return { name, metadata: metadata?.filterMetadata ?? {}, transport, networkFilters, network };
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
