// Whether and when one request is tried again: conditions and number from the route's policy and from the headers of a
// trusted client, the cluster's limit of retries, back-off with full jitter (Envoy: `RetryStateImpl`).
import { type ClusterLoad, countRetry } from "../../../upstream/cluster-load.ts";
import type { CircuitBreakerLimits, Cluster } from "../../../cluster/cluster.ts";
import type { StreamResetReason } from "../../../codec/stream-codec.ts";
import type { HeaderMap } from "../../../http/header-map.ts";
import type { RequestHead, ResponseHead } from "../../../http/message.ts";
import { retryConditions, type RetryPolicy } from "../../../route/route-table.ts";

export type RetryDecision =
  /** The condition does not ask for a retry. */
  | "no"
  /** It would, but the tries are used up (URX). */
  | "limit-exceeded"
  /** It would, but the cluster has too many under way (UO). */
  | "overflow"
  | "retry";

/** Envoy's default base and maximum where only headers ask for retries. */
const defaultBackOffBaseMs = 25;
const defaultBackOffMaxMs = 250;
const defaultMaxHostPicks = 1;

/** That no answer brings about, whatever stands in it. */
const connectionConditions =
  retryConditions.reset |
  retryConditions["reset-before-request"] |
  retryConditions["connect-failure"] |
  retryConditions["refused-stream"] |
  retryConditions["http3-post-connect-failure"];

const grpcConditions =
  retryConditions.cancelled |
  retryConditions["deadline-exceeded"] |
  retryConditions.internal |
  retryConditions["resource-exhausted"] |
  retryConditions.unavailable;

const names = [
  "x-envoy-retry-on",
  "x-envoy-retry-grpc-on",
  "x-envoy-max-retries",
  "x-envoy-retriable-status-codes",
  "x-envoy-retriable-header-names",
];

export class RetryState {
  readonly #conditions: number;
  readonly #statusCodes: readonly number[];
  readonly #policy: RetryPolicy | undefined;
  readonly #cluster: Cluster;
  readonly #random: () => number;
  readonly #backOffMaxMs: number;
  #backOffMs: number;
  #retriesLeft: number;
  #holdsRetry = false;
  readonly avoidPreviousHosts: boolean;
  readonly maxHostPicks: number;

  private constructor(
    conditions: number,
    retries: number,
    statusCodes: readonly number[],
    policy: RetryPolicy | undefined,
    cluster: Cluster,
    random: () => number,
  ) {
    this.#conditions = conditions;
    this.#statusCodes = statusCodes;
    this.#policy = policy;
    this.#cluster = cluster;
    this.#random = random;
    this.#retriesLeft = retries;
    this.#backOffMs = policy?.backOffBaseMs ?? defaultBackOffBaseMs;
    this.#backOffMaxMs = policy?.backOffMaxMs ?? defaultBackOffMaxMs;
    this.avoidPreviousHosts = policy?.avoidPreviousHosts ?? false;
    this.maxHostPicks = policy?.hostSelectionMaxAttempts ?? defaultMaxHostPicks;
  }

  /** Undefined when nothing asks for retries. The headers that do are taken off. */
  static of(
    request: RequestHead,
    policy: RetryPolicy | undefined,
    cluster: Cluster,
    random: () => number,
  ): RetryState | undefined {
    const { headers } = request;
    const retryOn = headers.get("x-envoy-retry-on");
    const grpcRetryOn = headers.get("x-envoy-retry-grpc-on");
    let conditions = policy?.retryOn ?? 0;
    let retries = policy?.numRetries ?? 1;
    let statusCodes = policy?.retriableStatusCodes ?? [];
    // Each header knows its own words alone, as in Envoy.
    if (retryOn !== undefined) conditions |= conditionBits(retryOn) & ~grpcConditions;
    if (grpcRetryOn !== undefined) conditions |= conditionBits(grpcRetryOn) & grpcConditions;
    const isAskedFor = retryOn !== undefined || grpcRetryOn !== undefined;
    if (conditions === 0) {
      if (isAskedFor) removeAll(headers);
      return undefined;
    }
    const maxRetries = headers.get("x-envoy-max-retries");
    if (maxRetries !== undefined && /^\d{1,9}$/.test(maxRetries)) retries = Number(maxRetries);
    const codes = headers.get("x-envoy-retriable-status-codes");
    if (codes !== undefined) statusCodes = [...statusCodes, ...codes.split(",").map(Number).filter(Number.isInteger)];
    if (isAskedFor || maxRetries !== undefined || codes !== undefined) removeAll(headers);
    if (policy?.isRetriableRequest !== undefined && !policy.isRetriableRequest(request)) return undefined;
    return new RetryState(conditions, retries, statusCodes, policy, cluster, random);
  }

  /** `isUnprocessed`: the host says that it has not taken the request, as with REFUSED_STREAM of HTTP/2. */
  onResponse(head: ResponseHead, isUnprocessed: boolean): RetryDecision {
    const isRefused = isUnprocessed && this.#wantsRetryAfter("remote_refused_stream_reset", false);
    return this.#decide(isRefused || this.#wantsRetryOf(head));
  }

  /** `requestStarted`: a byte of the request may have reached the upstream. */
  onReset(reason: StreamResetReason, requestStarted: boolean): RetryDecision {
    return this.#decide(this.#wantsRetryAfter(reason, requestStarted));
  }

  /** Milliseconds until the next try: anything below an interval that doubles each time, so that clients spread out. */
  nextBackOffMs(): number {
    this.#cluster.stats.upstreamRequestRetryBackOffs.increment();
    const intervalMs = this.#backOffMs;
    this.#backOffMs = intervalMs < this.#backOffMaxMs / 2 ? intervalMs * 2 : this.#backOffMaxMs;
    return Math.floor(this.#random() * intervalMs);
  }

  /** The retry that was decided on is over, or the request is. */
  release(): void {
    if (!this.#holdsRetry) return;
    this.#holdsRetry = false;
    countRetry(this.#cluster, -1);
  }

  /** The request goes on without another try (Envoy: retry_or_shadow_abandoned). */
  abandon(): void {
    this.#cluster.stats.retriesAbandoned.increment();
    this.release();
  }

  #decide(wanted: boolean): RetryDecision {
    const { stats, load, circuitBreakers } = this.#cluster;
    if (this.#holdsRetry && !wanted) stats.upstreamRequestRetrySuccess.increment();
    this.release();
    if (!wanted) return "no";
    if (this.#retriesLeft === 0) {
      stats.upstreamRequestRetryLimitExceeded.increment();
      return "limit-exceeded";
    }
    this.#retriesLeft -= 1;
    if (load.retries >= retryLimit(circuitBreakers, load)) {
      stats.upstreamRequestRetryOverflow.increment();
      return "overflow";
    }
    this.#holdsRetry = true;
    countRetry(this.#cluster, 1);
    stats.upstreamRequestRetries.increment();
    return "retry";
  }

  #wantsRetryOf(head: ResponseHead): boolean {
    const { status } = head;
    const on = this.#conditions;
    // Inbound routes ask for none of them.
    if ((on & ~connectionConditions) === 0) return false;
    // The upstream says that it limits us: only who asks for it goes on against that.
    if (head.headers.has("x-envoy-ratelimited")) return (on & retryConditions["envoy-ratelimited"]) !== 0;
    if (status >= 500 && status < 600 && (on & retryConditions["5xx"]) !== 0) return true;
    if (status >= 502 && status <= 504 && (on & retryConditions["gateway-error"]) !== 0) return true;
    if (status === 409 && (on & retryConditions["retriable-4xx"]) !== 0) return true;
    if ((on & retryConditions["retriable-status-codes"]) !== 0 && this.#statusCodes.includes(status)) return true;
    if ((on & retryConditions["retriable-headers"]) !== 0 && this.#policy?.isRetriableResponse?.(head) === true)
      return true;
    return grpcConditionMet(on, head);
  }

  #wantsRetryAfter(reason: StreamResetReason, requestStarted: boolean): boolean {
    const on = this.#conditions;
    if (reason === "overflow") return false;
    if (!requestStarted && (on & retryConditions["reset-before-request"]) !== 0) return true;
    if ((on & (retryConditions.reset | retryConditions["5xx"] | retryConditions["gateway-error"])) !== 0) return true;
    if (reason === "remote_refused_stream_reset") return (on & retryConditions["refused-stream"]) !== 0;
    const isConnectFailure =
      reason === "remote_connection_failure" ||
      reason === "local_connection_failure" ||
      reason === "connection_timeout";
    return isConnectFailure && (on & retryConditions["connect-failure"]) !== 0;
  }
}

/** A budget follows the traffic (Envoy: `RetryBudgetImpl`). */
function retryLimit({ maxRetries, retryBudget }: CircuitBreakerLimits, load: ClusterLoad): number {
  if (retryBudget === undefined) return maxRetries;
  const active = load.requests + load.pendingRequests;
  return Math.max(retryBudget.minConcurrency, (active * retryBudget.percent) / 100);
}

function removeAll(headers: HeaderMap): void {
  for (const name of names) headers.remove(name);
}

function conditionBits(text: string): number {
  let bits = 0;
  for (const part of text.split(",")) bits |= (retryConditions as Readonly<Record<string, number>>)[part.trim()] ?? 0;
  return bits;
}

/** gRPC says its status in a header when the answer has no body (trailers-only). */
function grpcConditionMet(on: number, head: ResponseHead): boolean {
  if ((on & grpcConditions) === 0) return false;
  switch (head.headers.get("grpc-status")) {
    case "1":
      return (on & retryConditions.cancelled) !== 0;
    case "4":
      return (on & retryConditions["deadline-exceeded"]) !== 0;
    case "8":
      return (on & retryConditions["resource-exhausted"]) !== 0;
    case "13":
      return (on & retryConditions.internal) !== 0;
    case "14":
      return (on & retryConditions.unavailable) !== 0;
    default:
      return false;
  }
}

/** RFC 9110 §9.2.2. */
const idempotentMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

/** Sent twice, such a request means the same as sent once. */
export function isIdempotent(method: string): boolean {
  return idempotentMethods.has(method);
}
