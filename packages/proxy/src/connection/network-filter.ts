// The surface of network filters that stand before the terminal one of a chain: they judge a connection as a whole
// (Envoy: `Network::ReadFilter::onNewConnection`).
import type { ConnectionInfo } from "./connection-info.ts";

export interface NetworkFilter {
  /** The name in the filter chain's list. */
  readonly name: string;
  /**
   * Asked once, when the TLS handshake is over. `close` ends the connection without a byte, with
   * `ConnectionInfo.terminationDetails` as the reason where the filter has set it. Must not throw.
   */
  onNewConnection(connection: ConnectionInfo): "continue" | "close";
}
