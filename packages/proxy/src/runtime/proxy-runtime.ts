// The compiled configuration of a proxy: listeners with their filter chains, route tables, clusters. Immutable; the next
// one replaces it in one synchronous step (`RuntimeOwner.swap`), and requests in flight finish on what they resolved.
import type { Counter, Gauge, Histogram } from "@tulle/telemetry";
import type { Cluster } from "../cluster/cluster.ts";
import type { DownstreamConnection, DownstreamConnectionOptions } from "../connection/downstream-connection.ts";
import type { NetworkFilter } from "../connection/network-filter.ts";
import type { ListenerFilter } from "../filters/listener/listener-filter.ts";
import type { HttpFilter } from "../http/filter.ts";
import type { ClientCertForwarding } from "../http/forwarded-client-cert.ts";
import type { LocalReplyRewrite } from "../http/local-reply.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { RouteTable } from "../route/route-table.ts";
import type { CommonTlsContext } from "../tls/common-tls-context.ts";
import type { TlsStats } from "../tls/tls-stats.ts";
import type { Slot } from "./slot.ts";

export interface ProxyRuntime {
  readonly listeners: ReadonlyMap<string, Listener>;
  readonly clusters: ReadonlyMap<string, Slot<Cluster>>;
  readonly routeTables: ReadonlyMap<string, Slot<RouteTable>>;
}

export interface ListenAddress {
  readonly ip: string;
  readonly port: number;
}

export interface Listener {
  readonly name: string;
  /** The main address and `additional_addresses`. */
  readonly addresses: readonly ListenAddress[];
  /** In order of specificity; the first whose match accepts the connection. */
  readonly filterChains: readonly FilterChain[];
  readonly defaultFilterChain: FilterChain | undefined;
  /** They look at the first bytes of a connection, in order, before its chain is chosen. */
  readonly listenerFilters: readonly ListenerFilter[];
  /** 0 = none (Envoy: 15 s). */
  readonly listenerFiltersTimeoutMs: number;
  /** After the time-out a chain is chosen by what is known; otherwise the connection is closed. */
  readonly continuesAfterListenerFiltersTimeout: boolean;
  /** Listener.access_log: one line a connection, at its end. */
  readonly accessLogs: readonly AccessLog[];
  readonly perConnectionBufferLimitBytes: number;
  /** False for a listener that only use_original_dst redirects to. */
  readonly bindToPort: boolean;
  readonly stats: ListenerStats;
}

export interface ListenerStats {
  readonly connectionsTotal: Counter;
  readonly connectionsActive: Gauge;
  readonly noFilterChainMatch: Counter;
  /** Closed at once because there were too many of all listeners, or because of overload. */
  readonly globalOverflow: Counter;
  readonly overloadRejected: Counter;
  /** Connections that listener filters look at. */
  readonly preConnectionsActive: Gauge;
  readonly preConnectionTimeouts: Counter;
  readonly listenerFilterErrors: Counter;
  readonly listenerFilterRemoteCloses: Counter;
}

/** What a connection offers to filter-chain matching (Envoy: FilterChainMatch). */
export interface ConnectionProperties {
  readonly localIp: string;
  readonly localPort: number;
  readonly remoteIp: string;
  readonly remotePort: number;
  readonly transportProtocol: "raw_buffer" | "tls";
  readonly serverName: string;
  readonly applicationProtocols: readonly string[];
}

export interface FilterChain {
  readonly name: string;
  matches(connection: ConnectionProperties): boolean;
  readonly transport: DownstreamTransport;
  /** Those before the terminal one, in order. */
  readonly networkFilters: readonly NetworkFilter[];
  readonly network: TerminalNetworkFilter;
}

/** How bytes travel: as they are, or within TLS that ends here. */
export type DownstreamTransport = { readonly type: "raw" } | DownstreamTls;

/** Envoy: DownstreamTlsContext, compiled. */
export interface DownstreamTls {
  readonly type: "tls";
  readonly context: CommonTlsContext;
  readonly requiresClientCertificate: boolean;
  /** FilterChain.transport_socket_connect_timeout; 0 = none. */
  readonly handshakeTimeoutMs: number;
  readonly handshakeTimeouts: Counter;
  readonly stats: TlsStats;
}

export type TerminalNetworkFilter = HttpConnectionManagerConfig | TcpProxyConfig;

/** Envoy: TcpProxy, compiled. */
export interface TcpProxyConfig {
  readonly type: "tcp_proxy";
  readonly statPrefix: string;
  /** Takes the connection; it has passed the chain's network filters. */
  open(options: DownstreamConnectionOptions): DownstreamConnection;
  /** A network filter has closed the connection: it counts and is logged all the same. */
  onRefused(options: Pick<DownstreamConnectionOptions, "info" | "dataPath" | "networkFilters">): void;
}

/** Envoy: HttpConnectionManager, compiled. */
export interface HttpConnectionManagerConfig {
  readonly type: "http_connection_manager";
  readonly statPrefix: string;
  /** The route table's slot: RDS by name, or an inline table already in place. */
  readonly routeTable: Slot<RouteTable>;
  readonly filters: readonly HttpFilter[];
  readonly accessLogs: readonly AccessLog[];
  /** `server:` of responses; "pass_through" leaves the upstream's (server_header_transformation). */
  readonly serverName: string;
  readonly serverHeaderTransformation: "overwrite" | "append_if_absent" | "pass_through";
  /** 0 = none. Envoy: common_http_protocol_options.idle_timeout (1 h), request_headers_timeout, stream_idle_timeout (5 min), request_timeout. */
  readonly connectionIdleTimeoutMs: number;
  readonly requestHeadersTimeoutMs: number;
  readonly streamIdleTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** 0 = none. Envoy: common_http_protocol_options.max_stream_duration; a route may have its own. */
  readonly maxStreamDurationMs: number;
  /** 0 = none. Envoy: common_http_protocol_options.max_connection_duration. */
  readonly maxConnectionDurationMs: number;
  /** At the end of its life a connection waits for one more answer, however long that takes (http1_safe_max_connection_duration). */
  readonly endsConnectionsSafely: boolean;
  /** Requests of one connection; 0 = no limit. Envoy: common_http_protocol_options.max_requests_per_connection. */
  readonly maxRequestsPerConnection: number;
  readonly maxRequestHeadersBytes: number;
  readonly maxRequestHeadersCount: number;
  readonly generateRequestId: boolean;
  readonly preserveExternalRequestId: boolean;
  readonly alwaysSetRequestIdInResponse: boolean;
  readonly useRemoteAddress: boolean;
  readonly xffNumTrustedHops: number;
  readonly skipXffAppend: boolean;
  readonly via: string;
  readonly clientCert: ClientCertForwarding;
  readonly normalizePath: boolean;
  readonly mergeSlashes: boolean;
  readonly pathWithEscapedSlashesAction:
    | "keep_unchanged"
    | "reject_request"
    | "unescape_and_redirect"
    | "unescape_and_forward";
  readonly stripMatchingHostPort: boolean;
  readonly stripAnyHostPort: boolean;
  readonly acceptHttp10: boolean;
  readonly allowAbsoluteUrl: boolean;
  /** Http1ProtocolOptions.enable_trailers: trailers pass; otherwise they are read and dropped. */
  readonly enableTrailers: boolean;
  /** internal_address_config: clients whose `x-envoy-*` headers are believed; Envoy's default is nobody. */
  isInternalAddress(ip: string): boolean;
  /** upgrade_configs: lower-case protocol names (`websocket`, `connect`) that may be upgraded. */
  readonly upgradeTypes: ReadonlySet<string>;
  readonly drainTimeoutMs: number;
  /** local_reply_config; undefined = such answers go out as they are. */
  readonly rewriteLocalReply: LocalReplyRewrite | undefined;
  readonly stats: HttpConnectionManagerStats;
}

export interface HttpConnectionManagerStats {
  readonly downstreamConnectionsTotal: Counter;
  readonly downstreamConnectionsActive: Gauge;
  readonly downstreamRequestsTotal: Counter;
  readonly downstreamRequestsActive: Gauge;
  readonly downstreamRequests1xx: Counter;
  readonly downstreamRequests2xx: Counter;
  readonly downstreamRequests3xx: Counter;
  readonly downstreamRequests4xx: Counter;
  readonly downstreamRequests5xx: Counter;
  readonly downstreamProtocolErrors: Counter;
  /** Connections that reached a limit of theirs. */
  readonly downstreamConnectionsIdleTimeout: Counter;
  readonly downstreamConnectionsMaxDuration: Counter;
  readonly downstreamConnectionsMaxRequests: Counter;
  /** Requests that were cut off by the client, by us, and by each of the time-outs. */
  readonly downstreamRequestsRemoteReset: Counter;
  readonly downstreamRequestsLocalReset: Counter;
  readonly downstreamRequestsHeaderTimeout: Counter;
  readonly downstreamRequestsTimeout: Counter;
  readonly downstreamRequestsIdleTimeout: Counter;
  readonly downstreamRequestsMaxDuration: Counter;
  /** Requests answered 503, and connections ended with their answer, because of overload. */
  readonly downstreamRequestsOverloadClose: Counter;
  readonly downstreamConnectionsOverloadDisableKeepalive: Counter;
  readonly downstreamRequestTimeMs: Histogram;
  readonly downstreamBytesReceived: Counter;
  readonly downstreamBytesSent: Counter;
}

export interface AccessLog {
  /** Called once when the stream has ended; must not throw. */
  log(info: StreamInfo): void;
}
