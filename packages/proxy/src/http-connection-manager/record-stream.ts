// The first two observers of a stream: the connection manager's statistics, and its access logs.
import type { AccessLog } from "../access-log/access-log.ts";
import type { HttpConnectionManagerStats, ListenerRequestStats } from "./http-connection-manager-stats.ts";
import type { StreamObserver } from "./stream-observer.ts";

export function statisticsObserver(
  stats: HttpConnectionManagerStats,
  ofListener: ListenerRequestStats,
): StreamObserver {
  const byClass = [
    stats.downstreamRequests1xx,
    stats.downstreamRequests2xx,
    stats.downstreamRequests3xx,
    stats.downstreamRequests4xx,
    stats.downstreamRequests5xx,
  ];
  const { requests1xx, requests2xx, requests3xx, requests4xx, requests5xx } = ofListener;
  const byClassOfListener = [requests1xx, requests2xx, requests3xx, requests4xx, requests5xx];
  return {
    onStart() {
      stats.downstreamRequestsTotal.increment();
      stats.downstreamRequestsActive.add(1);
    },
    onEnd(info) {
      stats.downstreamRequestsActive.add(-1);
      stats.downstreamRequestTimeMs.record(info.durationMs);
      const status = info.responseCode;
      if (status < 100) return;
      stats.downstreamRequestsCompleted.increment();
      ofListener.completed.increment();
      const index = Math.min(5, Math.floor(status / 100)) - 1;
      byClass[index]!.increment();
      byClassOfListener[index]!.increment();
    },
  };
}

export function accessLogObserver(log: AccessLog): StreamObserver {
  return { onEnd: (info) => log.log(info) };
}
