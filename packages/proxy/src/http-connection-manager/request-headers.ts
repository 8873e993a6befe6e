// What the connection manager does to the headers of every request before filters see it: who the client is, what may
// be believed of what it says, request ids (Envoy: `ConnectionManagerUtility::mutateRequestHeaders`).
import net from "node:net";
import { forwardClientCert, forwardedClientCertHeader } from "./forwarded-client-cert.ts";
import { ipPortText } from "../http/ip-port-text.ts";
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";
import { newRequestId } from "./request-id.ts";
import type { RequestHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";

/** Headers by which Envoys speak to each other; from a client that is not internal they mean nothing and go. */
const internalHeaders = new Set([
  "x-envoy-internal",
  "x-envoy-retriable-status-codes",
  "x-envoy-retriable-header-names",
  "x-envoy-retry-on",
  "x-envoy-retry-grpc-on",
  "x-envoy-max-retries",
  "x-envoy-upstream-alt-stat-name",
  "x-envoy-upstream-rq-timeout-ms",
  "x-envoy-upstream-rq-per-try-timeout-ms",
  "x-envoy-upstream-rq-timeout-alt-response",
  "x-envoy-upstream-stream-duration-ms",
  "x-envoy-expected-rq-timeout-ms",
  "x-envoy-hedge-on-per-try-timeout",
  "x-envoy-force-trace",
  "x-envoy-ip-tags",
  "x-envoy-original-url",
]);

/**
 * What only an edge takes away besides: there the client is a stranger and not a neighbour, whose word on what it has
 * rewritten counts. `x-envoy-is-timeout-retry` is left by Envoy.
 */
const edgeHeaders = new Set([
  "x-envoy-original-path",
  "x-envoy-original-host",
  "x-envoy-is-timeout-retry",
  "x-envoy-decorator-operation",
  "x-envoy-downstream-service-cluster",
  "x-envoy-downstream-service-node",
  "x-envoy-external-address",
]);

/** `clientCert` is what `currentClientCert` says of the connection. */
export function mutateRequestHeaders(
  request: RequestHead,
  info: StreamInfo,
  remoteIp: string,
  transportScheme: string,
  config: HttpConnectionManagerConfig,
  clientCert?: string,
): void {
  const headers = request.headers;
  const entries = headers.entries;
  let forwardedFor: string | undefined;
  let forwardedProto: string | undefined;
  let requestId: string | undefined;
  let hasEnvoyHeader = false;
  let forwardedCert: string | undefined;
  for (let index = 0; index < entries.length; index += 2) {
    const name = entries[index]!;
    if (name.charCodeAt(0) !== 120 /* x */) continue;
    if (name === "x-forwarded-for") {
      forwardedFor = forwardedFor === undefined ? entries[index + 1]! : `${forwardedFor},${entries[index + 1]!}`;
    } else if (name === "x-forwarded-proto") forwardedProto = entries[index + 1];
    else if (name === "x-request-id") requestId = entries[index + 1];
    else if (name === forwardedClientCertHeader) {
      forwardedCert = forwardedCert === undefined ? entries[index + 1]! : `${forwardedCert},${entries[index + 1]!}`;
    } else if (name.startsWith("x-envoy-")) hasEnvoyHeader = true;
  }

  const hops = config.xffNumTrustedHops;
  let clientIp = remoteIp;
  // As Envoy: without an address that was told nobody but an edge's own client is internal.
  let isSingleAddress = config.useRemoteAddress && forwardedFor === undefined;
  if (config.useRemoteAddress) {
    if (hops > 0 && forwardedFor !== undefined) clientIp = addressFromRight(forwardedFor, hops - 1) ?? remoteIp;
    if (!config.skipXffAppend)
      headers.set("x-forwarded-for", forwardedFor === undefined ? remoteIp : `${forwardedFor},${remoteIp}`);
    if (hops === 0 || forwardedProto === undefined) {
      headers.set("x-forwarded-proto", transportScheme);
      forwardedProto = transportScheme;
    }
  } else {
    if (forwardedFor !== undefined) {
      const trusted = addressFromRight(forwardedFor, hops);
      if (trusted !== undefined) {
        clientIp = trusted;
        isSingleAddress = !forwardedFor.includes(",");
      }
    }
    if (forwardedProto === undefined) {
      headers.append("x-forwarded-proto", transportScheme);
      forwardedProto = transportScheme;
    }
  }
  // In HTTP/2 the client says it itself (Envoy: scheme_header_transformation).
  if (request.protocol !== "HTTP/2" && (forwardedProto === "http" || forwardedProto === "https")) {
    request.scheme = forwardedProto;
  }
  // Port 0 says that the address was told and not seen, as in Envoy.
  if (clientIp !== remoteIp) info.downstreamRemoteAddress = ipPortText(clientIp, 0);

  const isInternal = isSingleAddress && config.isInternalAddress(clientIp);
  const isEdge = config.useRemoteAddress && !isInternal;
  if (hasEnvoyHeader && !isInternal) {
    headers.removeWhere((name) => internalHeaders.has(name) || (isEdge && edgeHeaders.has(name)));
  }
  if (isInternal) headers.set("x-envoy-internal", "true");
  if (isEdge) headers.set("x-envoy-external-address", clientIp);
  if (forwardedCert !== undefined || clientCert !== undefined) {
    forwardClientCert(headers, config.clientCert.mode, clientCert, forwardedCert);
  }
  if (config.via !== "") appendVia(request, config.via);
  if (config.generateRequestId && (requestId === undefined || (isEdge && !config.preserveExternalRequestId))) {
    headers.set("x-request-id", newRequestId());
  }
}

/** The address at `index` from the right of X-Forwarded-For; undefined when there is none or it is no IP address. */
function addressFromRight(forwardedFor: string, index: number): string | undefined {
  const parts = forwardedFor.split(",");
  const text = parts[parts.length - 1 - index]?.trim();
  return text !== undefined && net.isIP(text) !== 0 ? text : undefined;
}

function appendVia(request: RequestHead, via: string): void {
  const present = request.headers.getJoined("via");
  request.headers.set("via", present === undefined ? via : `${present}, ${via}`);
}

/** Drops the port of the authority as strip_matching_host_port and strip_any_host_port say. */
export function stripHostPort(request: RequestHead, localPort: number, config: HttpConnectionManagerConfig): void {
  if (!config.stripAnyHostPort && !config.stripMatchingHostPort) return;
  const { authority } = request;
  const colon = authority.lastIndexOf(":");
  // A colon inside brackets belongs to an IPv6 address.
  if (colon < 0 || authority.indexOf("]", colon) >= 0 || request.method === "CONNECT") return;
  if (config.stripAnyHostPort || Number(authority.slice(colon + 1)) === localPort) {
    request.authority = authority.slice(0, colon);
  }
}
