// What a cluster speaks to its endpoints: what the port's name says, unless a DestinationRule changes it (Istio:
// applyH2Upgrade, setUseDownstreamProtocol).
import type { MessageInitShape } from "@bufbuild/protobuf";
import { isHttp, parseDuration, type PortProtocol } from "@tulle/config";
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { Http2ProtocolOptionsSchema } from "@tulle/xds/envoy/config/core/v3/protocol_pb";
import { HttpProtocolOptionsSchema } from "@tulle/xds/envoy/extensions/upstreams/http/v3/http_protocol_options_pb";
import { meshHttp1Alpn, meshHttp2Alpn, meshHttpAlpn, meshTcpAlpn } from "../names/mesh-alpn.ts";
import type { PortTrafficPolicy } from "../scope/port-traffic-policy.ts";
import type { MeshService } from "../snapshot/mesh-snapshot.ts";
import type { commonHttpOptions } from "./cluster-limits.ts";
import { durationOfMs, pack } from "./messages.ts";
import { answerWindows } from "./shared-windows.ts";

const speaksHttp2: ReadonlySet<PortProtocol> = new Set(["http2", "grpc", "grpc-web"]);

/** `client`: what the request came in. */
export type UpstreamProtocol = "tcp" | "http1" | "http2" | "client";

/**
 * A gateway speaks HTTP/1.1 where nothing is known of the port: browsers agree on HTTP/2 with it, and the host may not
 * know that.
 */
export function upstreamProtocol(
  port: PortProtocol,
  type: "sidecar" | "router",
  policy: Partial<PortTrafficPolicy> = {},
  service: Pick<MeshService, "isUpgraded"> = {},
): UpstreamProtocol {
  if (!isHttp(port)) return "tcp";
  if (policy.connectionPool?.http?.useClientProtocol === true) return "client";
  // An upgrade is for ports that have said that they speak HTTP, as in Istio.
  if (port === "auto") return type === "sidecar" ? "client" : "http1";
  return speaksHttp2.has(port) || upgrades(policy, service) ? "http2" : "http1";
}

/**
 * Requests of an application as streams of a few connections cost a pair of sidecars half of the CPU. A rule that
 * counts connections, or requests that wait for one, was written for one request at a time on each, and one with TLS of
 * its own for what is behind the sidecar.
 */
function upgrades(
  { connectionPool, tls }: Partial<PortTrafficPolicy>,
  service: Pick<MeshService, "isUpgraded">,
): boolean {
  const { h2UpgradePolicy = "DEFAULT", http1MaxPendingRequests, maxRequestsPerConnection } = connectionPool?.http ?? {};
  if (h2UpgradePolicy !== "DEFAULT") return h2UpgradePolicy === "UPGRADE";
  const countsConnections = [
    connectionPool?.tcp?.maxConnections,
    http1MaxPendingRequests,
    maxRequestsPerConnection,
  ].some((limit) => limit !== undefined);
  const isMeshTls = tls === undefined || tls.mode === "ISTIO_MUTUAL";
  return service.isUpgraded === true && !countsConnections && isMeshTls;
}

/** What a proxy offers to another one; one list stands for all connections of a cluster. */
export function meshAlpn(protocol: UpstreamProtocol): readonly string[] {
  switch (protocol) {
    case "http1":
      return meshHttp1Alpn;
    case "http2":
      return meshHttp2Alpn;
    case "client":
      return meshHttpAlpn;
    case "tcp":
      return meshTcpAlpn;
  }
}

export interface ProtocolSettings {
  readonly names?: { readonly autoSni: boolean; readonly autoSanValidation: boolean };
  readonly common?: ReturnType<typeof commonHttpOptions>;
  readonly http2?: MessageInitShape<typeof Http2ProtocolOptionsSchema>;
}

/** HTTP/1.1 is what a cluster speaks by itself. */
export function protocolOptions(
  protocol: UpstreamProtocol,
  { names, common, http2: limits }: ProtocolSettings = {},
): Cluster["typedExtensionProtocolOptions"] {
  const hasNames = protocol !== "tcp" && names !== undefined && (names.autoSni || names.autoSanValidation);
  const isHttp1 = protocol === "http1" || protocol === "tcp";
  const http2 = { ...answerWindows, ...limits };
  if (isHttp1 && !hasNames && common === undefined) return {};
  const protocolConfig = isHttp1
    ? { case: "httpProtocolOptions" as const, value: {} }
    : { case: "http2ProtocolOptions" as const, value: http2 };
  return {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": pack(HttpProtocolOptionsSchema, {
      ...(common === undefined ? {} : { commonHttpProtocolOptions: common }),
      ...(hasNames ? { upstreamHttpProtocolOptions: names } : {}),
      upstreamProtocolOptions:
        protocol === "client"
          ? { case: "useDownstreamProtocolConfig", value: { httpProtocolOptions: {}, http2ProtocolOptions: http2 } }
          : { case: "explicitHttpConfig", value: { protocolConfig } },
    }),
  };
}

/** Limits of connections that speak HTTP/2. */
export function http2Options({
  connectionPool,
}: PortTrafficPolicy): MessageInitShape<typeof Http2ProtocolOptionsSchema> {
  const { maxConcurrentStreams = 0, http2KeepAlive } = connectionPool?.http ?? {};
  const duration = (text: string): ReturnType<typeof durationOfMs> => durationOfMs(parseDuration(text) ?? 0);
  return {
    // WebSockets are streams as well (RFC 8441).
    allowConnect: true,
    ...(maxConcurrentStreams > 0 ? { maxConcurrentStreams } : {}),
    ...(http2KeepAlive === undefined
      ? {}
      : {
          connectionKeepalive: {
            interval: duration(http2KeepAlive.interval),
            timeout: duration(http2KeepAlive.timeout),
          },
        }),
  };
}
