// What a client is told when no host answers its request: status, text, flag and details as Envoy's router has them.
import type { StreamResetReason } from "../../../codec/stream-codec.ts";
import type { Cluster } from "../../../cluster/cluster.ts";
import type { TryEnd } from "../../../http-connection-manager/stream-observer.ts";
import type { HttpStream, LocalReply } from "../../../http/filter.ts";
import { HeaderMap } from "../../../http/header-map.ts";
import type { ResponseFlag } from "../../../http/response-flags.ts";

/** Envoy's flag for each reason of a reset (`streamResetReasonToResponseFlag`). */
export const flagOfReset: Readonly<Record<StreamResetReason, ResponseFlag>> = {
  local_reset: "LR",
  remote_reset: "UR",
  remote_refused_stream_reset: "UR",
  connection_termination: "UC",
  remote_connection_failure: "UF",
  local_connection_failure: "UF",
  connection_timeout: "UF",
  overflow: "UO",
  protocol_error: "UPE",
};

export const noHealthyHost: LocalReply = {
  status: 503,
  body: "no healthy upstream",
  flag: "UH",
  details: "no_healthy_upstream",
};

export const unresolvedAuthority: LocalReply = {
  status: 503,
  body: "DNS resolution failure",
  flag: "DF",
  details: "dns_resolution_failure",
};

/** The status is the route's. */
export function noCluster(status: number): LocalReply {
  return { status, body: "", flag: "NC", details: "cluster_not_found" };
}

export function timedOut(details: string): LocalReply {
  return { status: 504, body: "upstream request timeout", flag: "UT", details };
}

export function lastedTooLong(requestEnded: boolean): LocalReply {
  return {
    status: requestEnded ? 504 : 408,
    body: "upstream max stream duration reached",
    flag: "UMSDR",
    details: "upstream_max_stream_duration_reached",
  };
}

/** `detail` are the transport's own words, or empty. */
export function resetBeforeResponse(reason: StreamResetReason, detail: string, isRetried: boolean): LocalReply {
  const what = isRetried ? "retried and the latest reset reason" : "reset reason";
  return {
    status: reason === "protocol_error" ? 502 : 503,
    body: `upstream connect error or disconnect/reset before headers. ${what}: ${reason.replaceAll("_", " ")}`,
    flag: flagOfReset[reason],
    details: `upstream_reset_before_response_started{${detail === "" ? reason : `${reason}|${detail}`}}`,
    ...(reason === "overflow" && { headers: new HeaderMap(["x-envoy-overloaded", "true"]) }),
  };
}

export function countTimedOutTry({ stats }: Cluster, details: string): void {
  if (details === "upstream_per_try_timeout") stats.upstreamRequestPerTryTimeouts.increment();
  else stats.upstreamRequestPerTryIdleTimeouts.increment();
}

/**
 * Answers for a host, or for want of one, which the cluster's counters show as an answer of its own (Envoy:
 * `chargeUpstreamCode`).
 */
export function answerInPlace(
  stream: HttpStream,
  { stats }: Cluster,
  reply: LocalReply,
  { isCanary, zone }: { readonly isCanary: boolean; readonly zone: string } = noHost,
): void {
  stats.answers.onAnswer(reply.status, { isInternal: isInternalRequest(stream.request.headers), isCanary, zone });
  stream.sendLocalReply(reply);
}

const noHost = { isCanary: false, zone: "" };

/** As the connection manager has said of it, and filters have left it. */
export function isInternalRequest(headers: HeaderMap): boolean {
  return headers.get("x-envoy-internal") === "true";
}

// What observers are told of tries that ended without an answer for the client.

/** Its answer asks for another try. */
export function answeredTry(status: number): TryEnd {
  return { status, flag: undefined, reason: undefined, isCanceled: true, isRetried: true };
}

export function resetTry(reason: StreamResetReason, isRetried: boolean): TryEnd {
  const words = reason.replaceAll("_", " ");
  return { status: 0, flag: flagOfReset[reason], reason: words, isCanceled: false, isRetried };
}

export function timedOutTry(isRetried: boolean): TryEnd {
  return { status: 0, flag: "UT", reason: undefined, isCanceled: true, isRetried };
}
