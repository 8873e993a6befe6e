// How proxies reach what traces and logs go to: a Service of the mesh by its cluster like any other (mutual TLS,
// identity), a host outside by a cluster of its own, which looks it up in DNS.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ProviderHeader } from "@tulle/config";
import {
  type Cluster,
  Cluster_DiscoveryType,
  Cluster_DnsLookupFamily,
  ClusterSchema,
} from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { HeaderValueOption_HeaderAppendAction } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { GrpcServiceSchema } from "@tulle/xds/envoy/config/core/v3/grpc_service_pb";
import type { HttpServiceSchema } from "@tulle/xds/envoy/config/core/v3/http_service_pb";
import { parseDuration } from "@tulle/config";
import type { OutsideTarget } from "../scope/workload-telemetry.ts";
import type { ProviderTarget } from "../snapshot/telemetry.ts";
import { durationOfMs, socketAddress } from "./messages.ts";
import { outboundClusterName, withPort } from "../names/resource-names.ts";
import { fromAnyAddress, publicTls } from "./token-clusters.ts";
import { upstreamTlsSocket } from "./tls-context.ts";
import { protocolOptions } from "./upstream-protocol.ts";

const connectTimeoutMs = 10_000;
/** Istio's, where the provider says nothing. */
const defaultTimeout = "5s";
/** Whoever is outside and listens there speaks TLS. */
const tlsPort = 443;

function clusterOf({ host, port }: ProviderTarget): string {
  return outboundClusterName(host, port);
}

export function grpcServiceOf(
  target: ProviderTarget,
  settings: { readonly timeout?: string; readonly initialMetadata?: readonly ProviderHeader[] } = {},
): MessageInitShape<typeof GrpcServiceSchema> {
  const { timeout, initialMetadata = [] } = settings;
  const value = { clusterName: clusterOf(target), authority: target.host };
  return {
    targetSpecifier: { case: "envoyGrpc", value },
    ...(timeout === undefined ? {} : { timeout: durationOfMs(parseDuration(timeout)!) }),
    initialMetadata: headersOf(initialMetadata),
  };
}

export function httpServiceOf(
  target: ProviderTarget,
  settings: { readonly path: string; readonly timeout?: string; readonly headers?: readonly ProviderHeader[] },
): MessageInitShape<typeof HttpServiceSchema> {
  const { path, timeout = defaultTimeout, headers = [] } = settings;
  const isTls = target.isOutside === true && target.port === tlsPort;
  return {
    httpUri: {
      uri: `${isTls ? "https" : "http"}://${withPort(target.host, target.port)}${path}`,
      httpUpstreamType: { case: "cluster", value: clusterOf(target) },
      timeout: durationOfMs(parseDuration(timeout)!),
    },
    requestHeadersToAdd: headersOf(headers).map((header) => ({
      header,
      appendAction: HeaderValueOption_HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    })),
  };
}

function headersOf(headers: readonly ProviderHeader[]): { readonly key: string; readonly value: string }[] {
  return headers.flatMap(({ name: key, value }) => (value === undefined ? [] : [{ key, value }]));
}

/** Of a host outside the mesh. */
export function outsideCluster(target: OutsideTarget): Cluster {
  const { host, port, protocol } = target;
  const name = clusterOf(target);
  const address = socketAddress(host, port);
  return create(ClusterSchema, {
    name,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STRICT_DNS },
    dnsLookupFamily: Cluster_DnsLookupFamily.V4_PREFERRED,
    connectTimeout: durationOfMs(connectTimeoutMs),
    typedExtensionProtocolOptions: protocolOptions(protocol === "grpc" ? "http2" : "http1", {}),
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: "endpoint", value: { address, hostname: host } } }] }],
    },
    ...(port === tlsPort
      ? { transportSocket: upstreamTlsSocket(publicTls(host, protocol === "grpc" ? ["h2"] : [])) }
      : {}),
    upstreamBindConfig: fromAnyAddress,
  });
}
