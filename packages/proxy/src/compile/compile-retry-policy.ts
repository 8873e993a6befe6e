// Envoy's RetryPolicy (config.route.v3.RetryPolicy) as the router reads it.
import type { RetryPolicy as RetryPolicyMessage } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { type RetryPolicy, retryConditions } from "../route/route-table.ts";
import { durationMs } from "../fields/duration.ts";
import { compileRequestHeaderMatcher, compileResponseHeaderMatcher } from "../fields/matchers/header-matcher.ts";
import type { Place, Problems } from "../fields/problems.ts";

/** Envoy's runtime default `upstream.base_retry_backoff_ms`. */
const defaultBackOffMs = 25;

const previousHostsType = "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate";
const previousHostsName = "envoy.retry_host_predicates.previous_hosts";

let last = { text: "", bits: 0 };

/**
 * Bits of `retryConditions`; tokens that Envoy does not know are without effect there too. Most routes of a mesh have
 * the same.
 */
export function parseRetryOn(text: string): number {
  if (text !== last.text) last = { text, bits: bitsOf(text) };
  return last.bits;
}

function bitsOf(text: string): number {
  let bits = 0;
  for (const token of text.split(",")) {
    bits |= retryConditions[token.trim() as keyof typeof retryConditions] ?? 0;
  }
  return bits;
}

export function compileRetryPolicy(message: RetryPolicyMessage, place: Place, problems: Problems): RetryPolicy {
  const baseMs = durationMs(message.retryBackOff?.baseInterval, defaultBackOffMs);
  const maxMs = durationMs(message.retryBackOff?.maxInterval, baseMs * 10);
  if (message.retryBackOff !== undefined) {
    const at = place.field("retry_back_off");
    if (message.retryBackOff.baseInterval === undefined) problems.error(at.field("base_interval"), "value is required");
    else if (baseMs <= 0) problems.error(at.field("base_interval"), "value must be greater than 0s");
    else if (maxMs < baseMs) problems.error(at, "max_interval must be greater than or equal to the base_interval");
  }
  const responseMatchers = message.retriableHeaders.map((matcher, index) =>
    compileResponseHeaderMatcher(matcher, place.field("retriable_headers", index), problems),
  );
  const requestMatchers = message.retriableRequestHeaders.map((matcher, index) =>
    compileRequestHeaderMatcher(matcher, place.field("retriable_request_headers", index), problems),
  );
  return {
    retryOn: parseRetryOn(message.retryOn),
    numRetries: message.numRetries ?? 1,
    perTryTimeoutMs: durationMs(message.perTryTimeout, 0),
    perTryIdleTimeoutMs: durationMs(message.perTryIdleTimeout, 0),
    retriableStatusCodes: message.retriableStatusCodes,
    backOffBaseMs: baseMs,
    backOffMaxMs: maxMs,
    avoidPreviousHosts: avoidsPreviousHosts(message, place, problems),
    hostSelectionMaxAttempts: Math.max(1, Number(message.hostSelectionRetryMaxAttempts)),
    isRetriableResponse:
      responseMatchers.length === 0 ? undefined : (response) => responseMatchers.some((matches) => matches(response)),
    isRetriableRequest:
      requestMatchers.length === 0 ? undefined : (request) => requestMatchers.some((matches) => matches(request)),
  };
}

function avoidsPreviousHosts(message: RetryPolicyMessage, place: Place, problems: Problems): boolean {
  let avoids = false;
  for (const [index, predicate] of message.retryHostPredicate.entries()) {
    const config = predicate.configType;
    const isPrevious =
      config.case === "typedConfig" ? config.value.typeUrl === previousHostsType : predicate.name === previousHostsName;
    if (isPrevious) avoids = true;
    else problems.error(place.field("retry_host_predicate", index), `'${predicate.name}' is not supported`);
  }
  return avoids;
}
