// How long a stream may last: what its route or the connection manager says, or a gRPC client where the route lets it
// (Envoy: `ActiveStream::refreshDurationTimeout`).
import type { LocalReply } from "../http/filter.ts";
import { grpcStatuses, isGrpc } from "../http/grpc-status.ts";
import { grpcTimeoutMs, setGrpcTimeout } from "../http/grpc-timeout.ts";
import type { RequestHead } from "../http/message.ts";
import type { ForwardAction, RouteAction } from "../route/route-table.ts";

export const lastedTooLong: Omit<LocalReply, "status"> = {
  body: "downstream duration timeout",
  flag: "DT",
  details: "max_duration_timeout",
  grpcStatus: grpcStatuses.deadlineExceeded,
};

/** Milliseconds from the stream's beginning; undefined = no limit. The host is told where the route says so. */
export function takeStreamDuration(
  request: RequestHead,
  action: RouteAction | undefined,
  managersMs: number,
): number | undefined {
  const route = action?.type === "forward" ? action : undefined;
  const durationMs = ofClient(request, route) ?? noneAtZero(route?.maxStreamDurationMs ?? managersMs);
  if (durationMs !== undefined && route?.tellsDuration === true && isGrpc(request.headers)) {
    setGrpcTimeout(request.headers, durationMs);
  }
  return durationMs;
}

function ofClient({ headers }: RequestHead, route: ForwardAction | undefined): number | undefined {
  const rule = route?.grpcDuration;
  if (rule === undefined) return undefined;
  const saidMs = grpcTimeoutMs(headers);
  if (saidMs === undefined) return undefined;
  const durationMs = rule.maxMs > 0 ? Math.min(saidMs, rule.maxMs) : saidMs;
  return rule.offsetMs > 0 && rule.offsetMs >= durationMs ? 0 : durationMs - rule.offsetMs;
}

function noneAtZero(durationMs: number): number | undefined {
  return durationMs === 0 ? undefined : durationMs;
}
