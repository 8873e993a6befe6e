// How proxies reach what traces and logs go to: a Service of the mesh by its cluster like any other (mutual TLS,
// identity), a host outside by a cluster of its own, which looks it up in DNS.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { parseDuration, type ProviderHeader } from "@tulle/config";
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { HeaderValueOption_HeaderAppendAction } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { GrpcServiceSchema } from "@tulle/xds/envoy/config/core/v3/grpc_service_pb";
import type { HttpServiceSchema } from "@tulle/xds/envoy/config/core/v3/http_service_pb";
import type { OutsideTarget } from "../scope/workload-telemetry.ts";
import type { ProviderTarget } from "../snapshot/telemetry.ts";
import { durationOfMs } from "./messages.ts";
import { outboundClusterName, withPort } from "../names/resource-names.ts";
import { outsideCluster } from "./outside-cluster.ts";
import { protocolOptions } from "./upstream-protocol.ts";

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
      uri: `${isTls ? "https" : "http"}://${withPort(target.host, target.port)}/${path.replace(/^\//, "")}`,
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
export function providerCluster(target: OutsideTarget): Cluster {
  const { host, port, protocol } = target;
  return outsideCluster(clusterOf(target), {
    host,
    port,
    tls: port === tlsPort ? { alpnProtocols: protocol === "grpc" ? ["h2"] : [] } : undefined,
    protocolOptions: protocolOptions(protocol === "grpc" ? "http2" : "http1", {}),
  });
}
