// A compiled route configuration and what it decides for a request. Compilation resolves every name and pre-builds
// every matcher; matching is pure, so that the explain command and the simulation tests walk the same code as traffic
// (Envoy: config.route.v3.RouteConfiguration).
import type { Cluster } from "../cluster/cluster.ts";
import type { GrpcTimeoutRule } from "../http/grpc-timeout.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { Slot } from "../runtime/slot.ts";
import type { RedactedNames } from "../format/redacted-names.ts";
import type { CustomTag, SamplingShares } from "../tracing/custom-tag.ts";

export interface RouteTable {
  readonly name: string;
  /**
   * Virtual host by authority (exact, then suffix wildcard, prefix wildcard, `*`), then the first route that matches.
   * `random` is a number in [0, 1) that decides weighted clusters and runtime fractions; `dynamicMetadata` is what
   * filters have left, by filter name.
   */
  match(
    request: RequestHead,
    random: () => number,
    dynamicMetadata?: Readonly<Record<string, unknown>>,
  ): RouteMatch | undefined;
  /** Of the virtual host that had no route for a request to `authority`; undefined = there is no such host. */
  virtualHostMetadata(authority: string): Route["metadata"] | undefined;
  /** Names of all clusters that it may choose. */
  readonly clusterNames: ReadonlySet<string>;
}

/** A route together with the cluster chosen among its weighted ones. */
export interface RouteMatch {
  readonly route: Route;
  readonly virtualHostName: string;
  readonly action: RouteAction;
}

export interface Route {
  /** `%ROUTE_NAME%`; empty when unnamed. */
  readonly name: string;
  /** Route metadata as plain JSON by filter name. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Likewise of its virtual host. */
  readonly virtualHostMetadata: Readonly<Record<string, unknown>>;
  /** Undefined: the connection manager's settings hold. */
  readonly tracing?: RouteTracing | undefined;
  readonly decorator?: RouteDecorator | undefined;
  /** typed_per_filter_config compiled by each filter, by filter name; virtual host's and route's already merged. */
  readonly perFilterConfig: ReadonlyMap<string, unknown>;
}

/** In place of the connection manager's (Envoy: config.route.v3.Tracing). */
export interface RouteTracing {
  readonly shares: SamplingShares;
  readonly tags: readonly CustomTag[];
  /** Names of spans. */
  readonly operation: ((info: StreamInfo, redactedNames: RedactedNames) => string) | undefined;
  readonly upstreamOperation: ((info: StreamInfo, redactedNames: RedactedNames) => string) | undefined;
}

/** Envoy: config.route.v3.Decorator. */
export interface RouteDecorator {
  readonly operation: string;
  /** The other side learns it by a header. */
  readonly propagates: boolean;
}

export type RouteAction = ForwardAction | RedirectAction | DirectResponseAction;

export interface ForwardAction {
  readonly type: "forward";
  readonly clusterSlot: Slot<Cluster>;
  /** Whole request; 0 = none. Envoy's default is 15 s where the route sets nothing; Istio writes 0s. */
  readonly timeoutMs: number;
  /** Overrides stream_idle_timeout, 0 = none; undefined = the connection manager's holds. */
  readonly idleTimeoutMs: number | undefined;
  /** Overrides the connection manager's max_stream_duration, 0 = none; undefined = that one holds. */
  readonly maxStreamDurationMs: number | undefined;
  /**
   * Bounds a gRPC request's life in the place of `maxStreamDurationMs` where the client says how long
   * (max_stream_duration).
   */
  readonly grpcDuration: GrpcTimeoutRule | undefined;
  /** Does so in the place of `timeoutMs` (max_grpc_timeout); undefined = `grpc-timeout` is passed on unread. */
  readonly grpcTimeout: GrpcTimeoutRule | undefined;
  /** The host learns by `grpc-timeout` how long the stream may last (Envoy: `usingNewTimeouts`). */
  readonly tellsDuration: boolean;
  readonly retryPolicy: RetryPolicy | undefined;
  /** Status when the cluster does not exist (cluster_not_found_response_code, 503). */
  readonly clusterNotFoundStatus: number;
  /** x-envoy-attempt-count towards upstream and downstream (virtual host's include_*_attempt_count). */
  readonly includeRequestAttemptCount: boolean;
  readonly includeAttemptCountInResponse: boolean;
  /** Rewrites and header changes of route, virtual host and configuration, in Envoy's order. */
  finalizeRequest(request: RequestHead, info: StreamInfo): void;
  finalizeResponse(response: ResponseHead, info: StreamInfo): void;
  /** True when finalizeResponse would change nothing: the data path then skips it. */
  readonly responseIsUntouched: boolean;
  /**
   * The authority becomes the chosen host's `hostname`, where it has one; the router does it for each try
   * (auto_host_rewrite).
   */
  readonly autoHostRewrite: boolean;
  /** `x-forwarded-host` keeps the client's authority when a rewrite replaces it (append_x_forwarded_host). */
  readonly appendForwardedHost: boolean;
  /** upgrade_configs of the route by lower-case protocol, overriding the connection manager's; undefined = none. */
  readonly upgrades: ReadonlyMap<string, UpgradeRule> | undefined;
}

export interface UpgradeRule {
  readonly enabled: boolean;
  /** CONNECT ends here and its payload goes to the cluster as plain TCP (connect_config); false passes CONNECT on. */
  readonly terminatesConnect: boolean;
}

export interface RedirectAction {
  readonly type: "redirect";
  readonly status: number;
  location(request: RequestHead): string;
  finalizeResponse(response: ResponseHead, info: StreamInfo): void;
}

export interface DirectResponseAction {
  readonly type: "direct";
  readonly status: number;
  readonly body: Uint8Array;
  finalizeResponse(response: ResponseHead, info: StreamInfo): void;
}

/** Envoy: config.route.v3.RetryPolicy. `retryOn` bits are of `retryConditions`. */
export interface RetryPolicy {
  readonly retryOn: number;
  readonly numRetries: number;
  /** 0 = none. */
  readonly perTryTimeoutMs: number;
  readonly perTryIdleTimeoutMs: number;
  readonly retriableStatusCodes: readonly number[];
  readonly backOffBaseMs: number;
  readonly backOffMaxMs: number;
  readonly avoidPreviousHosts: boolean;
  readonly hostSelectionMaxAttempts: number;
  /** retriable_headers, for the condition `retriable-headers`; undefined = none. */
  readonly isRetriableResponse: ((response: ResponseHead) => boolean) | undefined;
  /** retriable_request_headers: only requests that it accepts are tried again; undefined = all. */
  readonly isRetriableRequest: ((request: RequestHead) => boolean) | undefined;
}

/** Bits of `RetryPolicy.retryOn`, by Envoy's token (`x-envoy-retry-on`). */
export const retryConditions = {
  "5xx": 1 << 0,
  "gateway-error": 1 << 1,
  reset: 1 << 2,
  "reset-before-request": 1 << 3,
  "connect-failure": 1 << 4,
  "retriable-4xx": 1 << 5,
  "refused-stream": 1 << 6,
  "retriable-status-codes": 1 << 7,
  "retriable-headers": 1 << 8,
  "envoy-ratelimited": 1 << 9,
  "http3-post-connect-failure": 1 << 10,
  cancelled: 1 << 11,
  "deadline-exceeded": 1 << 12,
  internal: 1 << 13,
  "resource-exhausted": 1 << 14,
  unavailable: 1 << 15,
} as const;
