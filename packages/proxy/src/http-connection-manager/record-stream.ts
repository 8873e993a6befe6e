// What metrics and access logs learn of every stream: that it has begun, and in the end how it went.
import type { StreamInfo } from "../http/stream-info.ts";
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";

export function recordStreamStart({ stats }: HttpConnectionManagerConfig): void {
  stats.downstreamRequestsTotal.increment();
  stats.downstreamRequestsActive.add(1);
}

/** `info` is complete. */
export function recordStreamEnd({ stats, accessLogs }: HttpConnectionManagerConfig, info: StreamInfo): void {
  stats.downstreamRequestsActive.add(-1);
  stats.downstreamRequestTimeMs.record(info.durationMs);
  const status = info.responseCode;
  if (status >= 500) stats.downstreamRequests5xx.increment();
  else if (status >= 400) stats.downstreamRequests4xx.increment();
  else if (status >= 300) stats.downstreamRequests3xx.increment();
  else if (status >= 200) stats.downstreamRequests2xx.increment();
  else if (status >= 100) stats.downstreamRequests1xx.increment();
  for (const accessLog of accessLogs) accessLog.log(info);
}
