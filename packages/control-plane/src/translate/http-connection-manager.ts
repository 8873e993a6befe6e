// The HTTP connection managers of the three kinds of listener, with the settings that Istio gives them.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Filter } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { VirtualHostSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import {
  HttpConnectionManager_CodecType,
  HttpConnectionManager_ForwardClientCertDetails,
  HttpConnectionManager_PathWithEscapedSlashesAction,
  HttpConnectionManagerSchema,
} from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import { UuidRequestIdConfigSchema } from "@tulle/xds/envoy/extensions/request_id/uuid/v3/uuid_pb";
import type { PathNormalization } from "@tulle/config";
import { secretParameters } from "@tulle/telemetry";
import type { GatewayOwn, SidecarOwn } from "../scope/proxy-view.ts";
import type { ListenerTelemetry } from "../scope/workload-telemetry.ts";
import { accessLogs } from "./access-logs.ts";
import { tracing } from "./tracing.ts";
import { httpFilters } from "./http-filters.ts";
import { inboundRoute, type InboundTarget } from "./http-routes.ts";
import { inboundReplies } from "./local-replies.ts";
import { adsConfigSource, networkFilter, noTimeout, pack } from "./messages.ts";
import { inboundVirtualHostName } from "../names/resource-names.ts";
import { peerMetadataHeader } from "./peer-metadata.ts";
import { withRevision } from "./route-revisions.ts";
import { requestWindows } from "./shared-windows.ts";
import { tokenRefusals } from "./token-refusals.ts";

const serverName = "istio-envoy";

type ConnectionManagerInit = MessageInitShape<typeof HttpConnectionManagerSchema>;

/** What all three have in common. Streams have no idle limit, since Istio leaves long polls and gRPC streams alone. */
function base(
  placement: "sidecar" | "gateway",
  statPrefix: string,
  own: OwnSettings,
  telemetry: ListenerTelemetry | undefined,
  windows: Partial<typeof requestWindows> = {},
): ConnectionManagerInit & { $typeName?: never } {
  return {
    codecType: HttpConnectionManager_CodecType.AUTO,
    statPrefix,
    accessLog: accessLogs("requests", { telemetry, redactedParameters: own.redactedParameters }),
    streamIdleTimeout: noTimeout(),
    ...pathSettings(own.pathNormalization ?? "BASE"),
    requestIdExtension: {
      typedConfig: pack(UuidRequestIdConfigSchema, {
        useRequestIdForTraceSampling: telemetry?.tracing?.useRequestId ?? true,
      }),
    },
    ...(telemetry?.tracing === undefined
      ? {}
      : { tracing: tracing(telemetry.tracing, placement, unredacted(own, telemetry)) }),
    upgradeConfigs: [{ upgradeType: "websocket" }],
    // Of HTTP/2, they come as streams (RFC 8441).
    http2ProtocolOptions: { allowConnect: true, ...windows },
  };
}

/** Tulle's proxy leaves secrets out of its spans by itself. */
function unredacted(own: OwnSettings, { isTulle }: ListenerTelemetry): readonly string[] {
  return isTulle === true ? [] : (own.redactedParameters ?? secretParameters);
}

/** Istio: MeshConfig.ProxyPathNormalization. */
function pathSettings(paths: PathNormalization) {
  const { KEEP_UNCHANGED, UNESCAPE_AND_FORWARD } = HttpConnectionManager_PathWithEscapedSlashesAction;
  return {
    normalizePath: paths !== "NONE",
    mergeSlashes: paths === "MERGE_SLASHES" || paths === "DECODE_AND_MERGE_SLASHES",
    pathWithEscapedSlashesAction: paths === "DECODE_AND_MERGE_SLASHES" ? UNESCAPE_AND_FORWARD : KEEP_UNCHANGED,
  };
}

/** What the proxy's own part of the view says of it. */
type OwnSettings = Pick<SidecarOwn | GatewayOwn, "security" | "pathNormalization" | "redactedParameters" | "telemetry">;

/** What goes with the filters that judge requests. */
function judged({ security }: OwnSettings): Pick<ConnectionManagerInit, "localReplyConfig"> {
  const localReplyConfig = tokenRefusals(security);
  return localReplyConfig === undefined ? {} : { localReplyConfig };
}

function connectionManager(init: ConnectionManagerInit): Filter {
  return networkFilter("envoy.filters.network.http_connection_manager", pack(HttpConnectionManagerSchema, init));
}

export function outboundConnectionManager(statPrefix: string, routeName: string, own: OwnSettings): Filter {
  return connectionManager({
    ...base("sidecar", statPrefix, own, own.telemetry?.client),
    routeSpecifier: { case: "rds", value: { configSource: adsConfigSource(), routeConfigName: routeName } },
    useRemoteAddress: false,
    httpProtocolOptions: { allowAbsoluteUrl: true },
    // Routes decide which CONNECT is tunnelled; without this every one would be refused before it meets a route.
    upgradeConfigs: [{ upgradeType: "websocket" }, { upgradeType: "CONNECT" }],
    httpFilters: httpFilters("outbound", own),
  });
}

export function inboundConnectionManager(statPrefix: string, target: InboundTarget, own: OwnSettings): Filter {
  const host = create(VirtualHostSchema, {
    name: inboundVirtualHostName(target.servicePort),
    domains: ["*"],
    routes: [inboundRoute(target)],
    // For the metrics of this proxy alone: the application gets what its caller sent.
    requestHeadersToRemove: [peerMetadataHeader],
  });
  const routeConfig = create(RouteConfigurationSchema, {
    name: target.cluster,
    virtualHosts: [withRevision(host)],
    validateClusters: false,
  });
  return connectionManager({
    ...base("sidecar", statPrefix, own, own.telemetry?.server, requestWindows),
    routeSpecifier: { case: "routeConfig", value: routeConfig },
    serverName,
    useRemoteAddress: false,
    forwardClientCertDetails: HttpConnectionManager_ForwardClientCertDetails.APPEND_FORWARD,
    setCurrentClientCertDetails: { subject: true, uri: true, dns: true },
    httpFilters: httpFilters("inbound", own, target.protocol === "grpc-web"),
    localReplyConfig: inboundReplies(own.security),
  });
}

/**
 * Without a range Envoy takes 127.0.0.1 and private networks for internal where the field is set, and versions before
 * 1.33 do where it is not. Nobody connects from this address.
 */
const noInternalAddress = { cidrRanges: [{ addressPrefix: "0.0.0.0", prefixLen: 32 }] };

/**
 * Clients are outside: their address is the connection's, and what they say in `x-envoy-*` and client-certificate
 * headers is dropped. No address counts as internal, loopback included, or a laptop's own clients could steer retries
 * and time limits.
 */
export function gatewayConnectionManager(
  statPrefix: string,
  routeName: string,
  own: OwnSettings,
  trustedProxies: number,
  isGrpcWeb: boolean,
): Filter {
  return connectionManager({
    ...base("gateway", statPrefix, own, own.telemetry?.client),
    routeSpecifier: { case: "rds", value: { configSource: adsConfigSource(), routeConfigName: routeName } },
    serverName,
    useRemoteAddress: true,
    xffNumTrustedHops: trustedProxies,
    internalAddressConfig: noInternalAddress,
    forwardClientCertDetails: HttpConnectionManager_ForwardClientCertDetails.SANITIZE_SET,
    setCurrentClientCertDetails: { subject: true, cert: true, uri: true, dns: true },
    httpFilters: httpFilters("gateway", own, isGrpcWeb),
    ...judged(own),
  });
}
