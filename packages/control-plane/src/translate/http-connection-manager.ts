// The HTTP connection managers of the three kinds of listener, with the settings that Istio gives them.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import {
  type AccessLog,
  type AccessLogFilterSchema,
  AccessLogSchema,
} from "@tulle/xds/envoy/config/accesslog/v3/accesslog_pb";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import { StdoutAccessLogSchema } from "@tulle/xds/envoy/extensions/access_loggers/stream/v3/stream_pb";
import {
  HttpConnectionManager_CodecType,
  HttpConnectionManager_ForwardClientCertDetails,
  HttpConnectionManager_PathWithEscapedSlashesAction,
  HttpConnectionManagerSchema,
} from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import { UuidRequestIdConfigSchema } from "@tulle/xds/envoy/extensions/request_id/uuid/v3/uuid_pb";
import { defaultRedactedParameters, type PathNormalization } from "@tulle/config";
import { ReqWithoutQuerySchema } from "@tulle/xds/envoy/extensions/formatter/req_without_query/v3/req_without_query_pb";
import type { GatewayOwn, InboundPort, SidecarOwn } from "../scope/proxy-view.ts";
import { httpFilters } from "./http-filters.ts";
import { inboundRoute } from "./http-routes.ts";
import { adsConfigSource, noTimeout, pack } from "./messages.ts";
import { inboundClusterName, inboundVirtualHostName } from "../names/resource-names.ts";
import { peerMetadataHeader } from "./peer-metadata.ts";
import { tokenRefusals } from "./token-refusals.ts";

const serverName = "istio-envoy";

/** Istio's default access log (accessLogFormat, Istio 1.25). */
export const accessLogFormat =
  `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ` +
  `%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% ` +
  `%BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" ` +
  `"%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% ` +
  `%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%\n`;

type ConnectionManagerInit = MessageInitShape<typeof HttpConnectionManagerSchema>;

/** What all three have in common. Streams have no idle limit, since Istio leaves long polls and gRPC streams alone. */
function base(statPrefix: string, own: OwnSettings): ConnectionManagerInit & { $typeName?: never } {
  return {
    codecType: HttpConnectionManager_CodecType.AUTO,
    statPrefix,
    accessLog: [accessLog({ redactedParameters: own.redactedParameters ?? defaultRedactedParameters })],
    streamIdleTimeout: noTimeout(),
    ...pathSettings(own.pathNormalization ?? "BASE"),
    requestIdExtension: { typedConfig: pack(UuidRequestIdConfigSchema, { useRequestIdForTraceSampling: true }) },
    upgradeConfigs: [{ upgradeType: "websocket" }],
    // Of HTTP/2, they come as streams (RFC 8441).
    http2ProtocolOptions: { allowConnect: true },
  };
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
type OwnSettings = Pick<SidecarOwn | GatewayOwn, "security" | "pathNormalization" | "redactedParameters">;

/** What goes with the filters that judge requests. */
function judged({ security }: OwnSettings): Pick<ConnectionManagerInit, "localReplyConfig"> {
  const localReplyConfig = tokenRefusals(security);
  return localReplyConfig === undefined ? {} : { localReplyConfig };
}

export function outboundConnectionManager(statPrefix: string, routeName: string, own: OwnSettings): Any {
  return pack(HttpConnectionManagerSchema, {
    ...base(statPrefix, own),
    routeSpecifier: { case: "rds", value: { configSource: adsConfigSource(), routeConfigName: routeName } },
    useRemoteAddress: false,
    httpProtocolOptions: { allowAbsoluteUrl: true },
    // Routes decide which CONNECT is tunnelled; without this every one would be refused before it meets a route.
    upgradeConfigs: [{ upgradeType: "websocket" }, { upgradeType: "CONNECT" }],
    httpFilters: httpFilters("outbound", own),
  });
}

export function inboundConnectionManager(statPrefix: string, port: InboundPort, own: OwnSettings): Any {
  const name = inboundClusterName(port.targetPort);
  const routeConfig = create(RouteConfigurationSchema, {
    name,
    virtualHosts: [
      {
        name: inboundVirtualHostName(port.servicePort),
        domains: ["*"],
        routes: [inboundRoute(port)],
        // For the metrics of this proxy alone: the application gets what its caller sent.
        requestHeadersToRemove: [peerMetadataHeader],
      },
    ],
    validateClusters: false,
  });
  return pack(HttpConnectionManagerSchema, {
    ...base(statPrefix, own),
    routeSpecifier: { case: "routeConfig", value: routeConfig },
    serverName,
    useRemoteAddress: false,
    forwardClientCertDetails: HttpConnectionManager_ForwardClientCertDetails.APPEND_FORWARD,
    setCurrentClientCertDetails: { subject: true, uri: true, dns: true },
    httpFilters: httpFilters("inbound", own, port.protocol === "grpc-web"),
    ...judged(own),
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
  isGrpcWeb: boolean,
): Any {
  return pack(HttpConnectionManagerSchema, {
    ...base(statPrefix, own),
    routeSpecifier: { case: "rds", value: { configSource: adsConfigSource(), routeConfigName: routeName } },
    serverName,
    useRemoteAddress: true,
    internalAddressConfig: noInternalAddress,
    forwardClientCertDetails: HttpConnectionManager_ForwardClientCertDetails.SANITIZE_SET,
    setCurrentClientCertDetails: { subject: true, cert: true, uri: true, dns: true },
    httpFilters: httpFilters("gateway", own, isGrpcWeb),
    ...judged(own),
  });
}

/**
 * Where the path stands in the log; Envoy has no way to leave single parameters out, and leaves the query out as a
 * whole.
 */
const loggedPath = "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%";
const loggedPathWithoutQuery = "%REQ_WITHOUT_QUERY(X-ENVOY-ORIGINAL-PATH?:PATH)%";

interface LogOptions {
  readonly filter?: MessageInitShape<typeof AccessLogFilterSchema>;
  /** None where the line has no path. */
  readonly redactedParameters?: readonly string[];
}

/** Istio opens the file /dev/stdout, which Linux refuses where standard output is a socket, as under Node's `spawn`. */
export function accessLog({ filter, redactedParameters = [] }: LogOptions = {}): AccessLog {
  const isRedacted = redactedParameters.length > 0;
  const line = isRedacted ? accessLogFormat.replace(loggedPath, loggedPathWithoutQuery) : accessLogFormat;
  const textFormat = { specifier: { case: "inlineString", value: line } } as const;
  // Tulle's proxy reads the name; to Envoy it is one like another.
  const formatter = {
    name: `tulle.redacted_query:${redactedParameters.join(",")}`,
    typedConfig: pack(ReqWithoutQuerySchema, {}),
  };
  return create(AccessLogSchema, {
    name: "envoy.access_loggers.stdout",
    ...(filter === undefined ? {} : { filter }),
    configType: {
      case: "typedConfig",
      value: pack(StdoutAccessLogSchema, {
        accessLogFormat: {
          case: "logFormat",
          value: {
            format: { case: "textFormatSource", value: textFormat },
            formatters: isRedacted ? [formatter] : [],
          },
        },
      }),
    },
  });
}
