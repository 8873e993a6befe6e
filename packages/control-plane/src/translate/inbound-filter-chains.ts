// The filter chains of a sidecar's inbound port, by its mode of mutual TLS: which connections it takes, and how it
// tells them apart (Istio: getFilterChainMatchOptions). A port whose protocol is not named has chains for both.
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type Filter,
  type FilterChain,
  type FilterChainMatchSchema,
  FilterChainSchema,
  type ListenerFilter,
} from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import type { Listener } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import type { PortMutualTls } from "../scope/proxy-view.ts";
import { httpInspector, tlsInspector } from "./listener-filters.ts";
import { connectionStats, durationOfMs } from "./messages.ts";
import {
  downstreamTlsSocket,
  httpServerAlpn,
  meshClientAlpn,
  meshHttpClientAlpn,
  meshTcpClientAlpn,
  plainHttpAlpn,
  workloadServerTls,
} from "./tls-context.ts";

/** Fields of the listener. */
export interface InboundChains extends Partial<Pick<Listener, "listenerFiltersTimeout">> {
  readonly filterChains: FilterChain[];
  readonly listenerFilters: ListenerFilter[];
  readonly continueOnListenerFiltersTimeout?: true;
}

/** What a port does with requests, and with connections. It has both where the first bytes tell which it is. */
export interface PortFilters {
  readonly http?: readonly Filter[];
  readonly tcp?: readonly Filter[];
}

export interface InboundOptions {
  readonly mutualTls?: PortMutualTls | undefined;
  /** See `MeshSnapshot`. */
  readonly detectionTimeoutMs?: number | undefined;
  /** Of connections; undefined where no metrics are kept. */
  readonly stats: JsonObject | undefined;
}

/**
 * Who sends nothing for this long at a port that is not named HTTP waits for the server to speak first, as clients of
 * databases do: that is neither TLS nor HTTP. Istio's own default is to wait for ever.
 */
const defaultDetectionTimeoutMs = 5000;

type ChainInit = MessageInitShape<typeof FilterChainSchema> & { $typeName?: never };
type Match = MessageInitShape<typeof FilterChainMatchSchema> & { $typeName?: never };

/**
 * A connection that no chain matches is closed: plain text at a STRICT port, and at a port that is named HTTP TLS that
 * is not the mesh's. At the others foreign TLS is the application's.
 */
export function inboundFilterChains(filters: PortFilters, options: InboundOptions): InboundChains {
  const { mutualTls, detectionTimeoutMs } = options;
  const detects = filters.http !== undefined && filters.tcp !== undefined;
  const takesPlain = mutualTls?.mode !== "STRICT";
  const listenerFilters = [
    ...(mutualTls === undefined ? [] : [tlsInspector()]),
    ...(detects && takesPlain ? [httpInspector()] : []),
  ];
  const mayBeSilent = filters.tcp !== undefined && takesPlain && listenerFilters.length > 0;
  return {
    filterChains:
      mutualTls === undefined ? plainChains(filters, options) : mutualTlsChains(filters, mutualTls, options),
    listenerFilters,
    ...(mayBeSilent ? detectionTimeout(detectionTimeoutMs) : {}),
  };
}

/** How long a client that says nothing is waited for; what it has not said is then passed on. */
export function detectionTimeout(timeoutMs = defaultDetectionTimeoutMs) {
  return { listenerFiltersTimeout: durationOfMs(timeoutMs), continueOnListenerFiltersTimeout: true as const };
}

function plainChains({ http, tcp }: PortFilters, { stats }: InboundOptions): FilterChain[] {
  if (tcp === undefined) return [chain(http!, {})];
  const connections = connectionChain(tcp, stats, {});
  if (http === undefined) return [connections];
  return [chain(http, { name: "http", filterChainMatch: { applicationProtocols: [...plainHttpAlpn] } }), connections];
}

function mutualTlsChains(
  { http, tcp }: PortFilters,
  { mode, trustDomain, minimumTls }: PortMutualTls,
  { stats }: InboundOptions,
): FilterChain[] {
  const mesh = (alpn: readonly string[], match: Match) => ({
    name: "mutual-tls",
    filterChainMatch: { transportProtocol: "tls", ...match },
    transportSocket: downstreamTlsSocket(workloadServerTls({ trustDomain, alpn, minimum: minimumTls })),
  });
  const plain = (match: Match) => ({
    name: "plain-text",
    filterChainMatch: { transportProtocol: "raw_buffer", ...match },
  });
  const detects = http !== undefined && tcp !== undefined;
  const offered = (protocols: readonly string[]): Match => ({ applicationProtocols: [...protocols] });
  const meshMatch = mode === "STRICT" ? {} : offered(meshClientAlpn);
  const chains: FilterChain[] = [];
  if (http !== undefined) {
    chains.push(chain(http, mesh(httpServerAlpn, detects ? offered(meshHttpClientAlpn) : meshMatch)));
    if (mode !== "STRICT") chains.push(chain(http, plain(detects ? offered(plainHttpAlpn) : {})));
  }
  if (tcp !== undefined) {
    const connectionMatch = detects && mode !== "STRICT" ? offered(meshTcpClientAlpn) : meshMatch;
    chains.push(connectionChain(tcp, stats, mesh([], connectionMatch)));
    if (mode !== "STRICT") {
      chains.push(connectionChain(tcp, stats, { name: "foreign-tls", filterChainMatch: { transportProtocol: "tls" } }));
      chains.push(connectionChain(tcp, stats, plain({})));
    }
  }
  return chains;
}

function connectionChain(filters: readonly Filter[], stats: JsonObject | undefined, init: ChainInit): FilterChain {
  return chain(filters, { ...init, ...connectionStats(stats) });
}

function chain(filters: readonly Filter[], init: ChainInit): FilterChain {
  return create(FilterChainSchema, { ...init, filters: [...filters] });
}
