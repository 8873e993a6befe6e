// TLS that ends at a listener, compiled.
import type { Counter } from "@tulle/telemetry";
import type { CommonTlsContext } from "./common-tls-context.ts";
import type { TlsStats } from "./tls-stats.ts";

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
