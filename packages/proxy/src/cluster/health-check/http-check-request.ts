// A health check over HTTP: the request, and what its answer says of the host (HealthCheck.HttpHealthCheck).
import { HeaderMap } from "../../http/header-map.ts";
import { ownRequestProtocol, type RequestHead } from "../../http/message.ts";
import type { HealthCheckSettings, HttpCheck, StatusRange } from "./health-check-settings.ts";
import { holdsInOrder } from "./health-check-settings.ts";
import type { HealthCheckStats } from "./health-check-stats.ts";
import { activeFailure, type CheckResult, type CheckTarget } from "./probe.ts";
import type { CheckAnswer, CheckRequest } from "./request-probe.ts";

/** Envoy's. */
const userAgent = "Envoy/HC";

export function httpCheckRequest(
  target: CheckTarget,
  check: HttpCheck,
  { alpnProtocols, reusesConnection }: HealthCheckSettings,
  stats: HealthCheckStats,
): CheckRequest {
  const { body, protocol, receive } = check;
  return {
    protocol,
    alpnProtocols,
    reusesConnection,
    maxBodyBytes: receive.length === 0 ? 0 : check.responseBufferBytes,
    body,
    head: () => {
      const { method, path, changeHeaders } = check;
      const authority = checkAuthority(target, check.host);
      const head = checkHead(target, { method, path, authority, headers: ["user-agent", userAgent] });
      changeHeaders?.(head.headers, target.host, head);
      if (body !== undefined) head.headers.set("content-length", String(body.length));
      return head;
    },
    judge: (answer) => judge(answer, check, stats),
  };
}

/** That of the endpoint before that of the check before the cluster's name. */
export function checkAuthority({ host, cluster }: CheckTarget, configured: string): string {
  return host.check?.hostname || configured || cluster.name;
}

export function checkHead(
  { cluster, endpoint }: CheckTarget,
  request: { readonly method: string; readonly path: string; readonly authority: string; readonly headers: string[] },
): RequestHead {
  const scheme = cluster.transportOf?.(endpoint).kind === "tls" ? "https" : "http";
  return { ...request, scheme, protocol: ownRequestProtocol, headers: new HeaderMap(request.headers) };
}

function judge({ head, body }: CheckAnswer, check: HttpCheck, stats: HealthCheckStats): CheckResult {
  const { status, headers } = head;
  const isExcluded = headers.has("x-envoy-immediate-health-check-fail");
  if (!holdsInOrder(body, check.receive)) return activeFailure(false, isExcluded);
  if (!isIn(status, check.expectedStatuses)) return activeFailure(isIn(status, check.retriableStatuses), isExcluded);
  if (check.serviceName !== undefined) {
    stats.verifyCluster.increment();
    if (!check.serviceName(headers.get("x-envoy-upstream-healthchecked-cluster") ?? "")) return activeFailure();
  }
  return { ok: true, isDegraded: headers.has("x-envoy-degraded") };
}

function isIn(status: number, ranges: readonly StatusRange[]): boolean {
  return ranges.some(({ start, end }) => status >= start && status < end);
}
