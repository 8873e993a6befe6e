// The retry policy of a route, by Istio's rules and defaults.
import { create } from "@bufbuild/protobuf";
import { parseDuration, type Retries } from "@tulle/config";
import { type RetryPolicy, RetryPolicySchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { PreviousHostsPredicateSchema } from "@tulle/xds/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb";
import { durationOfMs, pack } from "./messages.ts";

const defaultRetryOn = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes";
const defaultAttempts = 2;

/**
 * Of inbound routes: repeats nothing that the application may have begun (Istio from 1.24:
 * ENABLE_INBOUND_RETRY_POLICY).
 */
export const retryBeforeRequest: RetryPolicy = create(RetryPolicySchema, {
  retryOn: "reset-before-request",
  numRetries: 2,
});

/** Undefined switches retries off. Without `retries` the mesh's default holds (Istio 1.25: retry.ConvertPolicy). */
export function retryPolicy(retries: Retries | undefined): RetryPolicy | undefined {
  const attempts = retries === undefined ? defaultAttempts : (retries.attempts ?? 0);
  if (attempts <= 0) return undefined;
  const { conditions, statusCodes } = parseRetryOn(retries?.retryOn);
  const perTryMs = retries?.perTryTimeout === undefined ? undefined : parseDuration(retries.perTryTimeout);
  return create(RetryPolicySchema, {
    retryOn: conditions,
    numRetries: attempts,
    retriableStatusCodes: statusCodes,
    ...(perTryMs === undefined ? {} : { perTryTimeout: durationOfMs(perTryMs) }),
    retryHostPredicate: [
      {
        name: "envoy.retry_host_predicates.previous_hosts",
        configType: { case: "typedConfig", value: pack(PreviousHostsPredicateSchema, {}) },
      },
    ],
    hostSelectionRetryMaxAttempts: 5n,
  });
}

/** Numbers in `retryOn` are status codes, and stand in a list of their own in Envoy. */
function parseRetryOn(retryOn = ""): { readonly conditions: string; readonly statusCodes: number[] } {
  const words = retryOn
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
  if (words.length === 0) return { conditions: defaultRetryOn, statusCodes: [] };
  const statusCodes = words.filter((word) => /^\d{3}$/.test(word)).map(Number);
  const conditions = words.filter((word) => !/^\d+$/.test(word));
  if (statusCodes.length > 0 && !conditions.includes("retriable-status-codes")) {
    conditions.push("retriable-status-codes");
  }
  return { conditions: conditions.join(","), statusCodes };
}
