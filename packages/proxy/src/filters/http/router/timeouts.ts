// The time-outs of one request, from its route and from the headers by which a trusted client may change them (Envoy:
// `FilterUtility::finalTimeout`). The headers are taken off on the way.
import { type GrpcTimeoutRule, grpcTimeoutMs, lessOffset, setGrpcTimeout } from "../../../http/grpc-timeout.ts";
import type { HeaderMap } from "../../../http/header-map.ts";
import type { RequestHead } from "../../../http/message.ts";
import type { ForwardAction } from "../../../route/route-table.ts";
import type { RouterFilterConfig } from "./router-config.ts";

export interface RequestTimeouts {
  /** Whole request with all tries; 0 = none, as for the other. */
  readonly totalMs: number;
  readonly perTryMs: number;
  /** The host learns by `grpc-timeout` how long we wait. */
  readonly tellsGrpc: boolean;
}

export const noTimeouts: RequestTimeouts = { totalMs: 0, perTryMs: 0, tellsGrpc: false };

export function takeTimeouts(
  request: RequestHead,
  action: ForwardAction,
  config: RouterFilterConfig,
  isGrpc: boolean,
): RequestTimeouts {
  const { headers } = request;
  const tellsGrpc = action.grpcTimeout !== undefined && isGrpc;
  let totalMs = tellsGrpc ? boundedGrpcTimeoutMs(headers, action.grpcTimeout) : action.timeoutMs;
  let perTryMs = action.retryPolicy?.perTryTimeoutMs ?? 0;
  // Most requests carry neither header: the look below walks the list only where some x-envoy- header stands in it.
  const expected = config.respectExpectedRequestTimeout
    ? milliseconds(headers.get("x-envoy-expected-rq-timeout-ms"))
    : undefined;
  const total = milliseconds(headers.get("x-envoy-upstream-rq-timeout-ms"));
  const perTry = milliseconds(headers.get("x-envoy-upstream-rq-per-try-timeout-ms"));
  if (total !== undefined || perTry !== undefined) {
    headers.remove("x-envoy-upstream-rq-timeout-ms");
    headers.remove("x-envoy-upstream-rq-per-try-timeout-ms");
  }
  totalMs = expected ?? total ?? totalMs;
  perTryMs = perTry ?? perTryMs;
  // A try cannot have longer than the whole.
  if (totalMs > 0 && perTryMs >= totalMs) perTryMs = 0;
  return { totalMs, perTryMs, tellsGrpc };
}

/** What the client says, or no limit; within the route's. */
function boundedGrpcTimeoutMs(headers: HeaderMap, rule: GrpcTimeoutRule): number {
  const timeoutMs = lessOffset(grpcTimeoutMs(headers) ?? 0, rule);
  const isBeyond = timeoutMs === 0 || timeoutMs > rule.maxMs;
  return rule.maxMs > 0 && isBeyond ? rule.maxMs : timeoutMs;
}

function milliseconds(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}

/** Tells the upstream how long we shall wait; what is left of the whole, for a later try. */
export function tellTimeout(
  headers: HeaderMap,
  { perTryMs, totalMs, tellsGrpc }: RequestTimeouts,
  elapsedMs: number,
  suppressEnvoyHeaders: boolean,
): void {
  if (suppressEnvoyHeaders && !tellsGrpc) return;
  let expectedMs = perTryMs;
  if (totalMs > 0) {
    const leftMs = Math.max(1, Math.floor(totalMs - elapsedMs));
    expectedMs = expectedMs > 0 ? Math.min(expectedMs, leftMs) : leftMs;
  }
  if (expectedMs === 0) return;
  if (!suppressEnvoyHeaders) headers.set("x-envoy-expected-rq-timeout-ms", String(expectedMs));
  if (tellsGrpc) setGrpcTimeout(headers, expectedMs);
}
