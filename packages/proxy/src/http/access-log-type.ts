// When a line of an access log is written (Envoy: `%ACCESS_LOG_TYPE%`, data.accesslog.v3.AccessLogType).

/** By name, their numbers in messages. */
export const accessLogTypes = {
  NotSet: 0,
  TcpUpstreamConnected: 1,
  TcpPeriodic: 2,
  TcpConnectionStart: 14,
  TcpConnectionEnd: 3,
  DownstreamStart: 4,
  DownstreamPeriodic: 5,
  DownstreamTunnelSuccessfullyEstablished: 10,
  DownstreamEnd: 6,
} as const;

export type AccessLogType = keyof typeof accessLogTypes;

/** What is logged goes on. */
export function isIntermediate(type: AccessLogType): boolean {
  return type !== "NotSet" && type !== "TcpConnectionEnd" && type !== "DownstreamEnd";
}
