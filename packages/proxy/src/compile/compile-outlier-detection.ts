// When hosts are ejected (config.cluster.v3.OutlierDetection), with Envoy's defaults.
import type { OutlierDetection } from "@tulle/xds/envoy/config/cluster/v3/outlier_detection_pb";
import type { OutlierDetectionSettings } from "../cluster/outlier-detection.ts";
import { durationMs } from "../fields/duration.ts";
import type { Place, Problems } from "../fields/problems.ts";

const defaultIntervalMs = 10_000;
const defaultBaseEjectionTimeMs = 30_000;
const defaultMaxEjectionTimeMs = 300_000;

const percentages = [
  "maxEjectionPercent",
  "enforcingConsecutive5xx",
  "enforcingSuccessRate",
  "enforcingConsecutiveGatewayFailure",
  "enforcingConsecutiveLocalOriginFailure",
  "enforcingLocalOriginSuccessRate",
  "failurePercentageThreshold",
  "enforcingFailurePercentage",
  "enforcingFailurePercentageLocalOrigin",
] as const satisfies readonly (keyof OutlierDetection)[];

export function compileOutlierDetection(
  message: OutlierDetection | undefined,
  place: Place,
  problems: Problems,
): OutlierDetectionSettings | undefined {
  if (message === undefined) return undefined;
  for (const field of percentages) {
    if ((message[field] ?? 0) > 100)
      problems.error(place.field(snakeCase(field)), "value must be less than or equal to 100");
  }
  for (const field of ["interval", "baseEjectionTime", "maxEjectionTime"] as const) {
    if (message[field] === undefined || durationMs(message[field], 0) > 0) continue;
    problems.error(place.field(snakeCase(field)), "value must be greater than 0s");
  }
  const baseEjectionTimeMs = durationMs(message.baseEjectionTime, defaultBaseEjectionTimeMs);
  return {
    intervalMs: durationMs(message.interval, defaultIntervalMs),
    baseEjectionTimeMs,
    maxEjectionTimeMs: durationMs(message.maxEjectionTime, Math.max(defaultMaxEjectionTimeMs, baseEjectionTimeMs)),
    maxEjectionTimeJitterMs: durationMs(message.maxEjectionTimeJitter, 0),
    maxEjectionPercent: message.maxEjectionPercent ?? 10,
    alwaysEjectOneHost: message.alwaysEjectOneHost ?? false,
    splitsLocalOrigin: message.splitExternalLocalOriginErrors,
    returnsCheckedHosts: message.successfulActiveHealthCheckUnejectHost ?? true,
    consecutive: {
      consecutive_5xx: {
        limit: message.consecutive5xx ?? 5,
        enforcedPercent: message.enforcingConsecutive5xx ?? 100,
      },
      consecutive_gateway_failure: {
        limit: message.consecutiveGatewayFailure ?? 5,
        enforcedPercent: message.enforcingConsecutiveGatewayFailure ?? 0,
      },
      consecutive_local_origin_failure: {
        limit: message.consecutiveLocalOriginFailure ?? 5,
        enforcedPercent: message.enforcingConsecutiveLocalOriginFailure ?? 100,
      },
    },
    successRate: {
      minimumHosts: message.successRateMinimumHosts ?? 5,
      requestVolume: message.successRateRequestVolume ?? 100,
      stdevFactor: message.successRateStdevFactor ?? 1900,
      enforcedPercent: message.enforcingSuccessRate ?? 100,
      enforcedPercentLocalOrigin: message.enforcingLocalOriginSuccessRate ?? 100,
    },
    failurePercentage: {
      thresholdPercent: message.failurePercentageThreshold ?? 85,
      minimumHosts: message.failurePercentageMinimumHosts ?? 5,
      requestVolume: message.failurePercentageRequestVolume ?? 50,
      enforcedPercent: message.enforcingFailurePercentage ?? 0,
      enforcedPercentLocalOrigin: message.enforcingFailurePercentageLocalOrigin ?? 0,
    },
  };
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]|\d(?=xx)/g, (letter) => `_${letter.toLowerCase()}`);
}
