// The series of an HTTP connection manager.
import type { Counter, Gauge, Histogram } from "@tulle/telemetry";

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
