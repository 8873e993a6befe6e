// The tags that every span has, of a request and of one try of it (Envoy: `HttpTracerUtility::finalizeDownstreamSpan`,
// `finalizeUpstreamSpan`).
import { grpcStatus, isGrpc } from "../http/grpc-status.ts";
import { withoutPort } from "../format/address-operators.ts";
import { redactQuery } from "../format/redact-query.ts";
import type { HeaderMap } from "../http/header-map.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";
import { responseFlagsText } from "../http/response-flags.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { TagSink } from "./active-span.ts";
import type { RedactedNames } from "../format/redacted-names.ts";

export interface TagSettings {
  readonly nodeId: string;
  readonly zone: string;
  readonly maxPathTagLength: number;
  readonly redactedNames: RedactedNames;
}

const none = "-";

/** Names that these functions give, which tags of the configuration may replace. */
export const givenTagNames: ReadonlySet<string> = new Set(
  `node_id zone guid:x-request-id http.url http.method downstream_cluster user_agent http.protocol peer.address
   guid:x-client-trace-id grpc.path grpc.authority grpc.content_type grpc.timeout request_size response_size component
   upstream_cluster upstream_cluster.name http.status_code response_flags grpc.status_code grpc.message error
   retry.count canceled upstream_address error.reason tulle.config.revision`.split(/\s+/),
);

export function tagRequest(info: StreamInfo, request: RequestHead, settings: TagSettings, sink: TagSink): void {
  const { headers } = request;
  if (settings.nodeId !== "") sink.tag("node_id", settings.nodeId);
  if (settings.zone !== "") sink.tag("zone", settings.zone);
  const requestId = headers.get("x-request-id");
  if (requestId !== undefined) sink.tag("guid:x-request-id", requestId);
  sink.tag("http.url", urlOf(request, settings));
  sink.tag("http.method", request.method);
  sink.tag("downstream_cluster", headers.get("x-envoy-downstream-service-cluster") ?? none);
  sink.tag("user_agent", headers.get("user-agent") ?? none);
  sink.tag("http.protocol", request.protocol);
  sink.tag("peer.address", withoutPort(info.downstreamDirectRemoteAddress) ?? none);
  const clientTraceId = headers.get("x-client-trace-id");
  if (clientTraceId !== undefined) sink.tag("guid:x-client-trace-id", clientTraceId);
  if (isGrpc(headers)) tagGrpcRequest(request, sink);
  sink.tag("request_size", String(info.bytesReceived));
  sink.tag("response_size", String(info.bytesSent));
}

function urlOf({ scheme, authority, path, headers }: RequestHead, settings: TagSettings): string {
  const original = headers.get("x-envoy-original-path") ?? path;
  const told = redactQuery(original, settings.redactedNames);
  return `${scheme}://${authority}${told.slice(0, settings.maxPathTagLength)}`;
}

function tagGrpcRequest({ path, authority, headers }: RequestHead, sink: TagSink): void {
  const query = path.indexOf("?");
  sink.tag("grpc.path", query < 0 ? path : path.slice(0, query));
  sink.tag("grpc.authority", authority);
  sink.tag("grpc.content_type", headers.get("content-type")!);
  const timeout = headers.get("grpc-timeout");
  if (timeout !== undefined) sink.tag("grpc.timeout", timeout);
}

/** What is told of a request and of a try; `flags` are response flags, `status` 0 where there was no answer. */
export function tagOutcome(info: StreamInfo, status: number, flags: number, sink: TagSink): void {
  sink.tag("component", "proxy");
  const { cluster } = info;
  if (cluster !== undefined) {
    sink.tag("upstream_cluster", cluster.name);
    sink.tag("upstream_cluster.name", cluster.observabilityName);
  }
  sink.tag("http.status_code", String(status));
  sink.tag("response_flags", flags === 0 ? none : responseFlagsText(flags));
}

/** Its status; undefined where there is none. */
export function tagGrpcOutcome(
  info: StreamInfo,
  request: RequestHead | undefined,
  response: ResponseHead | undefined,
  sink: TagSink,
): number | undefined {
  const status = grpcStatus(info, request, response);
  if (status === undefined) return undefined;
  sink.tag("grpc.status_code", String(status));
  const message = grpcMessage(info.responseTrailers) ?? grpcMessage(response?.headers);
  if (message !== undefined) sink.tag("grpc.message", message);
  return status;
}

function grpcMessage(fields: HeaderMap | undefined): string | undefined {
  return fields?.get("grpc-message");
}

/** By the tag `error`: those of which Envoy says that the host is at fault, exhausted resources among them. */
const grpcErrors: ReadonlySet<number> = new Set([2, 4, 8, 12, 13, 14, 15]);

export function isError(status: number, grpc: number | undefined): boolean {
  return status === 0 || status >= 500 || (grpc !== undefined && grpcErrors.has(grpc));
}
