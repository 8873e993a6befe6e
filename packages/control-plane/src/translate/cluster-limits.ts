// The limits of a DestinationRule → those of a cluster: connection pool, circuit breakers, retry budget, outlier
// detection (Istio: applyConnectionPool, applyOutlierDetection).
import type { MessageInitShape } from "@bufbuild/protobuf";
import { parseDuration } from "@tulle/config";
import type { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { CircuitBreakersSchema } from "@tulle/xds/envoy/config/cluster/v3/circuit_breaker_pb";
import type { OutlierDetectionSchema } from "@tulle/xds/envoy/config/cluster/v3/outlier_detection_pb";
import type { HttpProtocolOptionsSchema } from "@tulle/xds/envoy/config/core/v3/protocol_pb";
import { RoutingPriority } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { durationOfMs } from "./messages.ts";
import type { PortTrafficPolicy } from "../scope/port-traffic-policy.ts";

type ClusterInit = Exclude<MessageInitShape<typeof ClusterSchema>, { readonly $typeName: string }>;
type Limits = Pick<
  ClusterInit,
  "connectTimeout" | "circuitBreakers" | "outlierDetection" | "commonLbConfig" | "upstreamConnectionOptions"
>;

/** Istio's mesh default (connectTimeout). */
export const defaultConnectTimeoutMs = 10_000;
/**
 * The mesh limits nothing unless it is told to; Envoy's own defaults would cut at 1024 (Istio:
 * getDefaultCircuitBreakerThresholds).
 */
const noLimit = 4_294_967_295;

export function clusterLimits(policy: PortTrafficPolicy): Limits {
  const { tcp } = policy.connectionPool ?? {};
  const outlierDetection = outlierDetectionOf(policy.outlierDetection);
  return {
    connectTimeout: durationOf(tcp?.connectTimeout) ?? durationOfMs(defaultConnectTimeoutMs),
    circuitBreakers: circuitBreakers(policy),
    ...(outlierDetection === undefined
      ? {}
      : {
          outlierDetection,
          // Few endpoints make a Service here: without a word to the contrary the healthy ones alone are used, however
          // few.
          commonLbConfig: { healthyPanicThreshold: { value: policy.outlierDetection?.minHealthPercent ?? 0 } },
        }),
    ...(tcp?.tcpKeepalive === undefined
      ? {}
      : { upstreamConnectionOptions: { tcpKeepalive: keepAlive(tcp.tcpKeepalive) } }),
  };
}

/** Limits of requests and of the life of connections; undefined where nothing is asked for. */
export function commonHttpOptions({
  connectionPool,
}: PortTrafficPolicy): MessageInitShape<typeof HttpProtocolOptionsSchema> | undefined {
  const { tcp, http } = connectionPool ?? {};
  const idleTimeout = durationOf(http?.idleTimeout ?? tcp?.idleTimeout);
  const maxConnectionDuration = durationOf(tcp?.maxConnectionDuration);
  const maxRequestsPerConnection = http?.maxRequestsPerConnection ?? 0;
  if (idleTimeout === undefined && maxConnectionDuration === undefined && maxRequestsPerConnection === 0)
    return undefined;
  return {
    ...(idleTimeout === undefined ? {} : { idleTimeout }),
    ...(maxConnectionDuration === undefined ? {} : { maxConnectionDuration }),
    ...(maxRequestsPerConnection === 0 ? {} : { maxRequestsPerConnection }),
  };
}

/** Without a policy: no limit. As in Istio 0 is taken as "not set". */
export function circuitBreakers({
  connectionPool,
  retryBudget,
}: PortTrafficPolicy): MessageInitShape<typeof CircuitBreakersSchema> {
  const { tcp, http } = connectionPool ?? {};
  return {
    thresholds: [
      {
        priority: RoutingPriority.DEFAULT,
        maxConnections: tcp?.maxConnections || noLimit,
        maxPendingRequests: http?.http1MaxPendingRequests || noLimit,
        maxRequests: http?.http2MaxRequests || noLimit,
        maxRetries: http?.maxRetries || noLimit,
        trackRemaining: true,
        ...(retryBudget === undefined
          ? {}
          : {
              retryBudget: {
                ...(retryBudget.percent === undefined ? {} : { budgetPercent: { value: retryBudget.percent } }),
                ...(retryBudget.minRetryConcurrency === undefined
                  ? {}
                  : { minRetryConcurrency: retryBudget.minRetryConcurrency }),
              },
            }),
      },
    ],
  };
}

function outlierDetectionOf(
  policy: PortTrafficPolicy["outlierDetection"],
): MessageInitShape<typeof OutlierDetectionSchema> | undefined {
  if (policy === undefined) return undefined;
  const { consecutiveGatewayErrors, splitExternalLocalOriginErrors = false } = policy;
  const consecutive5xx = policy.consecutive5xxErrors ?? policy.consecutiveErrors;
  const interval = durationOf(policy.interval);
  const baseEjectionTime = durationOf(policy.baseEjectionTime);
  return {
    ...(consecutiveGatewayErrors === undefined
      ? {}
      : {
          consecutiveGatewayFailure: consecutiveGatewayErrors,
          enforcingConsecutiveGatewayFailure: consecutiveGatewayErrors > 0 ? 100 : 0,
        }),
    ...(consecutive5xx === undefined ? {} : { consecutive5xx, enforcingConsecutive5xx: consecutive5xx > 0 ? 100 : 0 }),
    // Hosts are judged by what they do, not by comparison.
    enforcingSuccessRate: 0,
    ...(interval === undefined ? {} : { interval }),
    ...(baseEjectionTime === undefined ? {} : { baseEjectionTime }),
    ...((policy.maxEjectionPercent ?? 0) > 0 ? { maxEjectionPercent: policy.maxEjectionPercent! } : {}),
    ...(splitExternalLocalOriginErrors
      ? {
          splitExternalLocalOriginErrors,
          enforcingLocalOriginSuccessRate: 0,
          ...((policy.consecutiveLocalOriginFailures ?? 0) > 0
            ? {
                consecutiveLocalOriginFailure: policy.consecutiveLocalOriginFailures!,
                enforcingConsecutiveLocalOriginFailure: 100,
              }
            : {}),
        }
      : {}),
  };
}

function keepAlive({ probes, time, interval }: { probes?: number; time?: string; interval?: string }) {
  const seconds = (text: string | undefined): number | undefined => {
    const milliseconds = text === undefined ? undefined : parseDuration(text);
    return milliseconds === undefined ? undefined : Math.max(1, Math.round(milliseconds / 1000));
  };
  const keepaliveTime = seconds(time);
  const keepaliveInterval = seconds(interval);
  return {
    ...(probes === undefined ? {} : { keepaliveProbes: probes }),
    ...(keepaliveTime === undefined ? {} : { keepaliveTime }),
    ...(keepaliveInterval === undefined ? {} : { keepaliveInterval }),
  };
}

function durationOf(text: string | undefined): ReturnType<typeof durationOfMs> | undefined {
  const milliseconds = text === undefined ? undefined : parseDuration(text);
  return milliseconds === undefined ? undefined : durationOfMs(milliseconds);
}
