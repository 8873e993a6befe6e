// A listener, compiled: its addresses, and the filter chains that its connections are given to.
import type { AccessLog } from "../access-log/access-log.ts";
import type { ListenerStats } from "./listener-stats.ts";
import type { NetworkFilter, TerminalNetworkFilter } from "./network-filter.ts";
import type { ListenerFilter } from "../filters/listener/listener-filter.ts";
import type { DownstreamTls, DownstreamTransport } from "../tls/downstream-tls.ts";

export interface ListenAddress {
  readonly ip: string;
  readonly port: number;
  /** SocketAddress.ipv4_compat: `::` takes IPv4 connections too, which it else leaves to others. */
  readonly takesIpv4?: boolean;
  /** Listener.transparent: also takes what the kernel leads there for other addresses, unchanged (TPROXY). */
  readonly isTransparent?: boolean;
}

export interface Listener {
  readonly name: string;
  /** As JSON, by filter name. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The main address and `additional_addresses`. */
  readonly addresses: readonly ListenAddress[];
  /** The default one, if there is one, last. */
  readonly filterChains: readonly FilterChain[];
  /** The most specific of those that match the connection, else the default one. */
  findChain(connection: ConnectionProperties): FilterChain | undefined;
  /** They look at the first bytes of a connection, in order, before its chain is chosen. */
  readonly listenerFilters: readonly ListenerFilter[];
  /** 0 = none (Envoy: 15 s). */
  readonly listenerFiltersTimeoutMs: number;
  /** After the time-out a chain is chosen by what is known; otherwise the connection is closed. */
  readonly continuesAfterListenerFiltersTimeout: boolean;
  /** Listener.access_log: one line a connection, at its end. */
  readonly accessLogs: readonly AccessLog[];
  readonly perConnectionBufferLimitBytes: number;
  /** False for a listener that only others hand connections to. */
  readonly bindToPort: boolean;
  /** A connection that was redirected here goes to the listener of its original destination, if there is one. */
  readonly usesOriginalDst: boolean;
  readonly stats: ListenerStats;
}

/** What a connection offers to filter-chain matching (Envoy: FilterChainMatch). */
export interface ConnectionProperties {
  readonly localIp: string;
  readonly localPort: number;
  readonly remoteIp: string;
  /** The peer itself, where a proxy says for whom it speaks. */
  readonly directRemoteIp: string;
  readonly remotePort: number;
  readonly transportProtocol: "raw_buffer" | "tls";
  readonly serverName: string;
  readonly applicationProtocols: readonly string[];
}

/** One that is the same object in a listener and in the one that takes its place keeps its connections. */
export interface FilterChain {
  readonly name: string;
  /** As JSON, by filter name. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly transport: DownstreamTransport;
  /** Those before the terminal one, in order. */
  readonly networkFilters: readonly NetworkFilter[];
  readonly network: TerminalNetworkFilter;
}

export function tlsTransports({ filterChains }: Listener): readonly DownstreamTls[] {
  return filterChains.map(({ transport }) => transport).filter((transport) => transport.type === "tls");
}
