// The first two observers of a stream: the connection manager's statistics, and its access logs.
import type { AccessLog } from "../access-log/access-log.ts";
import type { HttpConnectionManagerStats } from "./http-connection-manager-stats.ts";
import type { StreamObserver } from "./stream-observer.ts";

export function statisticsObserver(stats: HttpConnectionManagerStats): StreamObserver {
  return {
    onStart() {
      stats.downstreamRequestsTotal.increment();
      stats.downstreamRequestsActive.add(1);
    },
    onEnd(info) {
      stats.downstreamRequestsActive.add(-1);
      stats.downstreamRequestTimeMs.record(info.durationMs);
      const status = info.responseCode;
      if (status >= 500) stats.downstreamRequests5xx.increment();
      else if (status >= 400) stats.downstreamRequests4xx.increment();
      else if (status >= 300) stats.downstreamRequests3xx.increment();
      else if (status >= 200) stats.downstreamRequests2xx.increment();
      else if (status >= 100) stats.downstreamRequests1xx.increment();
    },
  };
}

export function accessLogObserver(log: AccessLog): StreamObserver {
  return { onEnd: (info) => log.log(info) };
}
