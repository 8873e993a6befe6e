// An HTTP connection manager, compiled: what holds for all connections of its filter chain.
import type { RedactedNames } from "../format/redacted-names.ts";
import type { Http2Options } from "../codec/http2/http2-options.ts";
import type { Http2Stats } from "../codec/http2/http2-stats.ts";
import type { HttpFilterChain } from "./filter-chain.ts";
import type { StreamObservers } from "./stream-observer.ts";
import type { ClientCertForwarding } from "./forwarded-client-cert.ts";
import type { LocalReplyRewrite } from "./local-reply.ts";
import type { RouteTable } from "../route/route-table.ts";
import type { Slot } from "../runtime/slot.ts";
import type { HttpConnectionManagerStats } from "./http-connection-manager-stats.ts";

/** Envoy: HttpConnectionManager, compiled. */
export interface HttpConnectionManagerConfig {
  readonly statPrefix: string;
  /** What its connections speak; `auto`: what ALPN agreed on, or their first bytes. */
  readonly codecType: "HTTP/1.1" | "HTTP/2" | "auto";
  readonly http2: Http2Options;
  readonly http2Stats: () => Http2Stats;
  /** The route table's slot: RDS by name, or an inline table already in place. */
  readonly routeTable: Slot<RouteTable>;
  readonly filterChain: HttpFilterChain;
  /** Statistics and access logs. */
  readonly observers: StreamObservers;
  /** In debug lines. */
  readonly redactedNames: RedactedNames;
  /** `server:` of responses; "pass_through" leaves the upstream's (server_header_transformation). */
  readonly serverName: string;
  readonly serverHeaderTransformation: "overwrite" | "append_if_absent" | "pass_through";
  /**
   * 0 = none. Envoy: common_http_protocol_options.idle_timeout (1 h), request_headers_timeout, stream_idle_timeout (5
   * min), request_timeout.
   */
  readonly connectionIdleTimeoutMs: number;
  readonly requestHeadersTimeoutMs: number;
  readonly streamIdleTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** How long a connection that we end waits for the client's end. Envoy: delayed_close_timeout (1 s); 0 = not. */
  readonly delayedCloseMs: number;
  /** 0 = none. Envoy: common_http_protocol_options.max_stream_duration; a route may have its own. */
  readonly maxStreamDurationMs: number;
  /** 0 = none. Envoy: common_http_protocol_options.max_connection_duration. */
  readonly maxConnectionDurationMs: number;
  /**
   * At the end of its life a connection waits for one more answer, however long that takes
   * (http1_safe_max_connection_duration).
   */
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
