// The server's metric handles, resolved once.
import type { Counter, Histogram, MetricRegistry } from "@tulle/telemetry";

export interface ServerMetrics {
  readonly registry: MetricRegistry;
  readonly codesIssued: Counter;
  readonly codeReplays: Counter;
  readonly refreshReuses: Counter;
  readonly auditDropped: Counter;
  tokensIssued(grantType: string): Counter;
  refusals(endpoint: string, error: string): Counter;
  logins(result: "success" | "failure" | "throttled" | "busy"): Counter;
  logoutNotices(result: "delivered" | "given up"): Counter;
  requests(endpoint: string, status: number): Counter;
  duration(endpoint: string): Histogram;
}

const durationBucketsMs = [0.5, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000];

export function serverMetrics(registry: MetricRegistry): ServerMetrics {
  const prefix = "tulle_auth_";
  return {
    registry,
    codesIssued: registry.counter({ name: `${prefix}codes_issued_total`, help: "Authorization codes issued." }),
    codeReplays: registry.counter({ name: `${prefix}code_replays_total`, help: "Codes presented a second time." }),
    refreshReuses: registry.counter({
      name: `${prefix}refresh_reuses_total`,
      help: "Refresh tokens presented after their grace time, which ends their family.",
    }),
    auditDropped: registry.counter({
      name: `${prefix}audit_events_dropped_total`,
      help: "Audit events that reached the log but not the database.",
    }),
    tokensIssued: (grantType) =>
      registry.counter({
        name: `${prefix}tokens_issued_total`,
        help: "Access tokens issued, by grant type.",
        labels: { grant_type: grantType },
      }),
    refusals: (endpoint, error) =>
      registry.counter({
        name: `${prefix}refusals_total`,
        help: "Requests refused, by endpoint and error code.",
        labels: { endpoint, error },
      }),
    logins: (result) =>
      registry.counter({ name: `${prefix}logins_total`, help: "Sign-in attempts, by result.", labels: { result } }),
    logoutNotices: (result) =>
      registry.counter({
        name: `${prefix}logout_notices_total`,
        help: "Back-channel logouts, by result.",
        labels: { result },
      }),
    requests: (endpoint, status) =>
      registry.counter({
        name: `${prefix}requests_total`,
        help: "HTTP requests, by endpoint and status.",
        labels: { endpoint, status: String(status) },
      }),
    duration: (endpoint) =>
      registry.histogram(
        { name: `${prefix}request_duration_milliseconds`, help: "Time to answer.", labels: { endpoint } },
        durationBucketsMs,
      ),
  };
}
