// The connection manager as the last filter of a chain: what a listener gives HTTP connections to.
import type { DownstreamConnection, DownstreamConnectionOptions } from "../listener/downstream-connection.ts";
import type { TerminalNetworkFilter, UnopenedEnd } from "../listener/network-filter.ts";
import { HttpConnection } from "./http-connection.ts";
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";

export class HttpConnectionManager implements TerminalNetworkFilter {
  readonly config: HttpConnectionManagerConfig;

  constructor(config: HttpConnectionManagerConfig) {
    this.config = config;
  }

  open(options: DownstreamConnectionOptions): DownstreamConnection {
    return new HttpConnection(this.config, options);
  }

  // The manager counts connections from their beginning (Envoy): one whose handshake failed is among them.
  onUnopened(end: UnopenedEnd): void {
    if (end === "handshake_failed") this.config.stats.downstreamConnectionsTotal.increment();
  }
}
