// Attributes of a request and its response by their path (docs: intro/arch_overview/advanced/attributes). Those that
// are not in the table are refused when the configuration comes, where Envoy finds out with each request that there are
// none.
import { headersBytes, requestHeadersBytes, responseHeadersBytes } from "../http/headers-bytes.ts";
import { requestHeader, responseHeader } from "../http/read-header.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import { toldGrpcStatus } from "../http/grpc-status.ts";
import type { TlsInfo } from "../tls/tls-info.ts";
import { type CelValue, celValue } from "./cel-value.ts";

export interface CelSubject {
  readonly info: StreamInfo;
  readonly request: RequestHead | undefined;
  readonly response: ResponseHead | undefined;
}

export type ReadAttribute = (subject: CelSubject) => CelValue;

const ofRequest =
  (name: string): ReadAttribute =>
  ({ request }) =>
    request && requestHeader(name)(request);

function pathOf(request: RequestHead | undefined, part: "path" | "query"): string | undefined {
  if (request === undefined || request.path === "") return undefined;
  const at = request.path.indexOf("?");
  if (part === "path") return at < 0 ? request.path : request.path.slice(0, at);
  return at < 0 ? "" : request.path.slice(at + 1).replace(/#.*$/s, "");
}

type Side = "local" | "peer";

function tlsAttributes(prefix: string, tlsOf: (info: StreamInfo) => TlsInfo | undefined) {
  const read = (of: (tls: TlsInfo) => CelValue): ReadAttribute => {
    return ({ info }) => {
      const tls = tlsOf(info);
      return tls && of(tls);
    };
  };
  const ofSide = (side: Side): readonly (readonly [string, ReadAttribute])[] => [
    [`subject_${side}_certificate`, read((tls) => tls[side].subject || undefined)],
    [`dns_san_${side}_certificate`, read((tls) => tls[side].dnsSans[0])],
    [`uri_san_${side}_certificate`, read((tls) => tls[side].uriSans[0])],
  ];
  const table: readonly (readonly [string, ReadAttribute])[] = [
    ["tls_version", read((tls) => tls.version)],
    ...ofSide("local"),
    ...ofSide("peer"),
    ["sha256_peer_certificate_digest", read((tls) => tls.peer.fingerprint256 || undefined)],
  ];
  return Object.fromEntries(table.map(([name, attribute]) => [`${prefix}.${name}`, attribute]));
}

function portOf(address: string | undefined): number | undefined {
  const port = /:(\d+)$/.exec(address ?? "")?.[1];
  return port === undefined ? undefined : Number(port);
}

/** What the client says that its body has: Envoy believes it before the body has come. */
function declaredBytes(request: RequestHead | undefined): number | undefined {
  const declared = request?.headers.get("content-length");
  return declared === undefined ? undefined : Number(declared);
}

const seconds = (ms: number): string => `${ms / 1000}s`;

/** No plain object: an expression may name `constructor` too. */
export const attributes: ReadonlyMap<string, ReadAttribute> = new Map<string, ReadAttribute>(
  Object.entries({
    "request.path": ofRequest(":path"),
    "request.url_path": ({ request }) => pathOf(request, "path"),
    "request.query": ({ request }) => pathOf(request, "query"),
    "request.host": ofRequest(":authority"),
    "request.scheme": ofRequest(":scheme"),
    "request.method": ofRequest(":method"),
    "request.referer": ofRequest("referer"),
    "request.useragent": ofRequest("user-agent"),
    "request.id": ofRequest("x-request-id"),
    "request.protocol": ({ request }) => request?.protocol,
    "request.headers": ({ request }) => request && { get: (name) => requestHeader(name)(request) },
    "request.time": ({ info }) => new Date(info.startTimeMs).toISOString(),
    "request.duration": ({ info }) => seconds(info.durationMs),
    "request.size": ({ info, request }) => declaredBytes(request) ?? info.bytesReceived,
    "request.total_size": ({ info, request }) =>
      info.bytesReceived + (request === undefined ? 0 : requestHeadersBytes(request)),
    "response.code": ({ info }) => (info.responseCode === 0 ? undefined : info.responseCode),
    "response.code_details": ({ info }) => info.responseCodeDetails,
    "response.headers": ({ response }) => response && { get: (name) => responseHeader(name)(response) },
    "response.trailers": ({ info: { responseTrailers } }) =>
      responseTrailers && { get: (name) => responseTrailers.getJoined(name.toLowerCase()) },
    "response.size": ({ info }) => info.bytesSent,
    "response.total_size": ({ info, response }) =>
      info.bytesSent +
      (response === undefined ? 0 : responseHeadersBytes(response)) +
      headersBytes(info.responseTrailers),
    "response.grpc_status": ({ info, response }) => {
      const told = toldGrpcStatus(info, response);
      return told === undefined || !/^\d+$/.test(told) ? undefined : Number(told);
    },
    "response.backend_latency": ({ info }) =>
      info.upstreamServiceTimeMs < 0 ? undefined : seconds(info.upstreamServiceTimeMs),
    "source.address": ({ info }) => info.downstreamRemoteAddress,
    "source.port": ({ info }) => portOf(info.downstreamRemoteAddress),
    "destination.address": ({ info }) => info.downstreamLocalAddress,
    "destination.port": ({ info }) => portOf(info.downstreamLocalAddress),
    "connection.mtls": ({ info }) => info.downstreamTls?.peer.isPresent === true,
    "connection.requested_server_name": ({ info }) => info.requestedServerName,
    "connection.termination_details": ({ info }) => info.connectionTerminationDetails,
    "connection.transport_failure_reason": ({ info }) => info.downstreamTransportFailureReason,
    ...tlsAttributes("connection", (info) => info.downstreamTls),
    "upstream.address": ({ info }) => info.upstreamHost?.addressText,
    "upstream.port": ({ info }) => portOf(info.upstreamHost?.addressText),
    "upstream.local_address": ({ info }) => info.upstreamLocalAddress,
    "upstream.transport_failure_reason": ({ info }) => info.upstreamTransportFailureReason,
    "upstream.request_attempt_count": ({ info }) => info.attemptCount,
    ...tlsAttributes("upstream", (info) => info.upstreamTls),
    "metadata.filter_metadata": ({ info }) => celValue(info.dynamicMetadata ?? {}),
    "xds.cluster_name": ({ info }) => info.cluster?.name,
    "xds.cluster_metadata.filter_metadata": ({ info }) => info.cluster && celValue(info.cluster.metadata),
    "xds.route_name": ({ info }) => info.route?.name,
    "xds.route_metadata.filter_metadata": ({ info }) => info.route && celValue(info.route.metadata),
    "xds.upstream_host_metadata.filter_metadata": ({ info }) =>
      info.upstreamHost && celValue(info.upstreamHost.metadata),
  } satisfies Record<string, ReadAttribute>),
);
