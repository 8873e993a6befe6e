// What a TCP proxy knows before a connection comes (extensions.filters.network.tcp_proxy.v3.TcpProxy, compiled).
import type { Cluster } from "../../../cluster/cluster.ts";
import type { ConnectionInfo } from "../../../listener/connection-info.ts";
import type { AccessLog } from "../../../access-log/access-log.ts";
import type { Slot } from "../../../runtime/slot.ts";
import type { TcpProxyStats } from "./tcp-proxy-stats.ts";

export interface TcpLogFlush {
  /** 0 = none. */
  readonly intervalMs: number;
  readonly onStart: boolean;
  readonly onConnected: boolean;
}

export interface TcpProxySettings {
  readonly statPrefix: string;
  /** Asked once for each connection; undefined where a name that the connection brought is no cluster's. */
  chooseCluster(connection: ConnectionInfo): Slot<Cluster> | undefined;
  /** 0 = none. */
  readonly idleTimeoutMs: number;
  /** 0 = none. */
  readonly maxDurationMs: number;
  /** Up to so many percent are added to the maximum by chance, so that connections of one moment do not end in one. */
  readonly maxDurationJitterPercent: number;
  readonly maxConnectAttempts: number;
  readonly accessLogs: readonly AccessLog[];
  /** When they are written before the end. */
  readonly logFlush: TcpLogFlush;
  readonly stats: TcpProxyStats;
}
