// Retries of requests that the proxy itself sends (config.core.v3.RetryPolicy).
import type { RetryPolicy } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { AsyncRetries } from "../upstream/async-client.ts";
import { durationMs } from "./duration.ts";

const defaultRetryOn = "5xx,gateway-error,connect-failure,reset";
const defaultBackOffMs = 25;

export function compileRetries(policy: RetryPolicy): AsyncRetries {
  const on = new Set((policy.retryOn === "" ? defaultRetryOn : policy.retryOn).split(",").map((token) => token.trim()));
  return {
    count: policy.numRetries ?? 1,
    backOffMs: durationMs(policy.retryBackOff?.baseInterval, defaultBackOffMs),
    onServerError: on.has("5xx") || on.has("gateway-error"),
    onReset: on.has("5xx") || on.has("reset"),
    onConnectFailure: on.has("5xx") || on.has("connect-failure"),
  };
}
