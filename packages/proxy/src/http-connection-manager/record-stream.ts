// The first two observers of a stream: the connection manager's statistics, and its access logs.
import type { Counter } from "@tulle/telemetry";
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
      if (info.isUpgrade) stats.downstreamUpgradesActive.add(-1);
      stats.downstreamRequestTimeMs.record(info.durationMs);
      const status = info.responseCode;
      if (status < 100) return;
      stats.downstreamRequestsCompleted.increment();
      ofListener.completed.increment();
      const index = Math.min(5, Math.floor(status / 100)) - 1;
      byClass[index]!.increment();
      byClassOfListener[index]!.increment();
      if (index >= 2) refusalOf(stats.refusals, status, info.responseCodeDetails)?.increment();
    },
  };
}

/** Undefined: the answer tells of none. */
function refusalOf(
  refusals: HttpConnectionManagerStats["refusals"],
  status: number,
  details: string | undefined,
): Counter | undefined {
  switch (details) {
    case "path_normalization_failed":
      return status === 307 ? refusals.path_normalization_redirected : refusals.path_normalization_failed;
    case "absolute_path_rejected":
    case "request_payload_too_large":
    case "upgrade_failed":
      return refusals[details];
    default:
      return undefined;
  }
}

export function accessLogObserver(log: AccessLog): StreamObserver {
  return { onEnd: (info) => log.log(info) };
}
