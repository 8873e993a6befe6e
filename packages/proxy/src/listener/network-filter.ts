// The surface of network filters: those that stand before the last one of a chain judge a connection as a whole
// (Envoy: `Network::ReadFilter::onNewConnection`), the last one takes it.
import type { StreamInfo } from "../http/stream-info.ts";
import type { ConnectionInfo } from "./connection-info.ts";
import type { DataPath } from "../worker/data-path.ts";
import type { DownstreamConnection, DownstreamConnectionOptions } from "./downstream-connection.ts";

/**
 * `opened`: it leads to a host, or will never lead to one. `continues`: now and then while it lasts. `closed`: once,
 * last.
 */
export type TcpPhase = "opened" | "continues" | "closed";

export type Verdict = "continue" | "close";

export interface NetworkFilter {
  /** The name in the filter chain's list. */
  readonly name: string;
  /**
   * Asked once, when the TLS handshake is over. `close` ends the connection without a byte, with
   * `ConnectionInfo.terminationDetails` as the reason where the filter has set it. A filter that has to wait says so by
   * giving how it is called off, and calls `decide` in a later turn. Must not throw.
   */
  onNewConnection(
    connection: ConnectionInfo,
    dataPath: DataPath,
    decide: (verdict: Verdict) => void,
  ): Verdict | { readonly cancel: () => void };
  /** What a TCP proxy at the end of the chain tells of the connection, those that a filter has closed included. */
  onTcpSession?(info: StreamInfo, phase: TcpPhase): void;
  /** How often it wants to be told of one that goes on. */
  readonly reportIntervalMs?: number;
}

/** The last filter of a chain. */
export interface TerminalNetworkFilter {
  /** Takes a connection that has passed the chain's network filters. */
  open(options: DownstreamConnectionOptions): DownstreamConnection;
  /** A connection of the chain has ended before. */
  onUnopened(end: UnopenedEnd, connection: UnopenedConnection): void;
}

export type UnopenedConnection = Pick<DownstreamConnectionOptions, "info" | "dataPath" | "networkFilters">;

/** Why a connection does not come to the last filter: its TLS handshake failed, or a network filter closed it. */
export type UnopenedEnd = "handshake_failed" | "closed_by_filter";
