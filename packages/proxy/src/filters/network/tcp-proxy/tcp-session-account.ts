// What a TCP proxy tells of its connections: those before it in the filter chain while they last, access logs in the
// end.
import type { DownstreamConnectionOptions } from "../../../listener/downstream-connection.ts";
import type { TcpPhase, UnopenedConnection } from "../../../listener/network-filter.ts";
import type { AccessLogType } from "../../../http/access-log-type.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import { beginningStreamInfo } from "../connection-stream-info.ts";
import type { TcpProxySettings } from "./tcp-proxy-settings.ts";

type SessionOptions = Pick<DownstreamConnectionOptions, "info" | "dataPath" | "networkFilters">;

/** Istio's: tcp_reporting_duration. */
const defaultReportIntervalMs = 5000;

/** After how long those who listen are to be told again; undefined where nobody does. */
export function reportSession(
  { networkFilters }: SessionOptions,
  info: StreamInfo,
  phase: TcpPhase,
): number | undefined {
  let intervalMs: number | undefined;
  for (const filter of networkFilters) {
    if (filter.onTcpSession === undefined) continue;
    filter.onTcpSession(info, phase);
    intervalMs = Math.min(intervalMs ?? Infinity, filter.reportIntervalMs ?? defaultReportIntervalMs);
  }
  return intervalMs;
}

/** While it lasts, or at its end. */
export function logSession(
  settings: TcpProxySettings,
  { dataPath }: SessionOptions,
  info: StreamInfo,
  type: AccessLogType,
): void {
  info.accessLogType = type;
  info.durationMs = dataPath.turn.nowMs - info.startMonotonicMs;
  for (const log of settings.accessLogs) log.log(info);
}

export function endSession(settings: TcpProxySettings, options: SessionOptions, info: StreamInfo): void {
  info.durationMs = options.dataPath.turn.nowMs - info.startMonotonicMs;
  info.connectionTerminationDetails = options.info.terminationDetails;
  options.info.session = info;
  reportSession(options, info, "closed");
  logSession(settings, options, info, "TcpConnectionEnd");
}

/** A connection that a filter of the chain has closed before it came here counts as one all the same. */
export function accountRefused(settings: TcpProxySettings, options: UnopenedConnection): void {
  const info = beginningStreamInfo(options.info, options.dataPath);
  info.cluster = settings.chooseCluster(options.info)?.current;
  settings.stats.connectionsTotal.increment();
  reportSession(options, info, "opened");
  endSession(settings, options, info);
}
