// What a TCP proxy at the end of a filter chain is to the listener.
import type { DownstreamConnection, DownstreamConnectionOptions } from "../../../listener/downstream-connection.ts";

/** Envoy: TcpProxy, compiled. */
export interface TcpProxyConfig {
  readonly type: "tcp_proxy";
  readonly statPrefix: string;
  /** Takes the connection; it has passed the chain's network filters. */
  open(options: DownstreamConnectionOptions): DownstreamConnection;
  /** A network filter has closed the connection: it counts and is logged all the same. */
  onRefused(options: Pick<DownstreamConnectionOptions, "info" | "dataPath" | "networkFilters">): void;
}
