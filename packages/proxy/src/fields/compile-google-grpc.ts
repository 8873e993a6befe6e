// google_grpc, Envoy's other gRPC client (config.core.v3.GrpcService.GoogleGrpc), as a cluster of our own: its address
// becomes the cluster's endpoints, its channel credentials the cluster's TLS. So both clients verify their server by
// the same code.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { isIP, isIPv4 } from "node:net";
import { rootCertificates } from "node:tls";
import {
  type Cluster,
  Cluster_DiscoveryType,
  Cluster_DnsLookupFamily,
  ClusterSchema,
} from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { AddressSchema } from "@tulle/xds/envoy/config/core/v3/address_pb";
import { type DataSource, DataSourceSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type {
  GrpcService,
  GrpcService_GoogleGrpc as GoogleGrpc,
  GrpcService_GoogleGrpc_SslCredentials as SslCredentials,
} from "@tulle/xds/envoy/config/core/v3/grpc_service_pb";
import {
  SubjectAltNameMatcher_SanType as SanType,
  TlsParameters_TlsProtocol as TlsProtocol,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/common_pb";
import { UpstreamTlsContextSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/tls_pb";
import type { GrpcTarget } from "../http/grpc-target.ts";
import { checkHeaderText } from "./check-header-text.ts";
import { compileMetadata } from "./compile-grpc-service.ts";
import type { Place, Problems } from "./problems.ts";

export interface CompiledGoogleGrpc {
  readonly target: GrpcTarget;
  /** To be put beside the bootstrap's own. */
  readonly cluster: Cluster;
}

/** Undefined after an error. `place` is the GrpcService's. */
export function compileGoogleGrpc(
  service: GrpcService,
  google: GoogleGrpc,
  place: Place,
  problems: Problems,
): CompiledGoogleGrpc | undefined {
  const at = place.field("google_grpc");
  const address = readTargetUri(google.targetUri, at.field("target_uri"), problems);
  if (google.statPrefix === "") {
    problems.error(at.field("stat_prefix"), "value length must be at least 1 characters");
  }
  if (address === undefined) return undefined;
  const name = `google_grpc:${google.targetUri}`;
  const transportSocket = transportSocketOf(google, address, at.field("channel_credentials"), problems);
  const tokens = callCredentials(google, transportSocket !== undefined, at, problems);
  return {
    target: {
      clusterName: name,
      authority: address.authority,
      metadata: [...compileMetadata(service.initialMetadata, place, problems), ...tokens],
      maxMessageBytes: undefined,
    },
    cluster: create(ClusterSchema, {
      name,
      clusterDiscoveryType: { case: "type", value: address.type },
      // gRPC tries all addresses of a name, of either family.
      dnsLookupFamily: Cluster_DnsLookupFamily.ALL,
      ...(transportSocket !== undefined && { transportSocket }),
      loadAssignment: {
        clusterName: name,
        endpoints: [
          {
            lbEndpoints: address.addresses.map((one) => ({
              hostIdentifier: { case: "endpoint" as const, value: { address: one } },
            })),
          },
        ],
      },
    }),
  };
}

interface TargetAddress {
  readonly type: Cluster_DiscoveryType;
  readonly addresses: readonly MessageInitShape<typeof AddressSchema>[];
  /** The name that the server's certificate must bear: a DNS name or an address; empty for a Unix socket. */
  readonly serverName: string;
  readonly authority: string;
  /** No other machine can be at the other end. */
  readonly isLocal: boolean;
}

const defaultPort = 443;
const longestUnixPath = 107;

/**
 * gRPC's names (gRPC Name Resolution): `dns:///host:port`, `ipv4:a:p,b:p`, `ipv6:[a]:p`, `unix:path`, `unix:///path`,
 * `host:port`.
 */
function readTargetUri(uri: string, place: Place, problems: Problems): TargetAddress | undefined {
  const refuse = (words: string): undefined => {
    problems.error(place, words);
    return undefined;
  };
  const scheme = /^(dns|ipv4|ipv6|unix|unix-abstract|xds|vsock|https?):/.exec(uri)?.[1];
  const rest = scheme === undefined ? uri : uri.slice(scheme.length + 1);
  switch (scheme) {
    case "unix": {
      const path = rest.startsWith("///") ? rest.slice(2) : rest;
      if (path === "" || path.length > longestUnixPath) return refuse("a path of 1 to 107 bytes is required");
      const address = { address: { case: "pipe" as const, value: { path } } };
      const type = Cluster_DiscoveryType.STATIC;
      return { type, addresses: [address], serverName: "", authority: "localhost", isLocal: true };
    }
    case "ipv4":
    case "ipv6": {
      const parsed = rest.split(",").map(hostAndPort);
      const family = scheme === "ipv4" ? 4 : 6;
      if (parsed.some((one) => one === undefined || isIP(one.host) !== family)) {
        return refuse(
          `addresses with ports are required: ${scheme === "ipv4" ? "ipv4:192.0.2.1:18000" : "ipv6:[2001:db8::1]:18000"}`,
        );
      }
      return addressed(parsed as HostPort[]);
    }
    case "dns":
    case undefined: {
      // dns:host, dns:///host, and dns://server/host, which names the resolver to ask.
      const named = /^\/\/([^/]*)\/(.*)$/.exec(rest);
      if (named !== null && named[1] !== "")
        return refuse("a DNS server of its own is not supported; leave it out: dns:///host:port");
      const one = hostAndPort(scheme === undefined ? rest : (named?.[2] ?? rest));
      if (one === undefined) return refuse("expected host:port, dns:///host:port, ipv4:, ipv6: or unix:");
      return addressed([one]);
    }
    default:
      return refuse(`'${scheme}:' is not supported; use host:port, dns:///host:port, ipv4:, ipv6: or unix:`);
  }
}

interface HostPort {
  readonly host: string;
  readonly port: number;
}

function hostAndPort(text: string): HostPort | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^[\]:/\s]+))(?::(\d{1,5}))?$/.exec(text);
  if (match === null) return undefined;
  const port = match[3] === undefined ? defaultPort : Number(match[3]);
  return port < 1 || port > 65_535 ? undefined : { host: match[1] ?? match[2]!, port };
}

function addressed(list: readonly HostPort[]): TargetAddress {
  const { host, port } = list[0]!;
  const text = host.includes(":") ? `[${host}]` : host;
  return {
    type: isIP(host) === 0 ? Cluster_DiscoveryType.STRICT_DNS : Cluster_DiscoveryType.STATIC,
    addresses: list.map((one) => ({
      address: {
        case: "socketAddress",
        value: { address: one.host, portSpecifier: { case: "portValue", value: one.port } },
      },
    })),
    serverName: host,
    authority: `${text}:${port}`,
    isLocal: list.every((one) => (isIPv4(one.host) ? one.host.startsWith("127.") : one.host === "::1")),
  };
}

function transportSocketOf(
  google: GoogleGrpc,
  address: TargetAddress,
  place: Place,
  problems: Problems,
): Cluster["transportSocket"] {
  const credentials = google.channelCredentials?.credentialSpecifier;
  switch (credentials?.case) {
    case "sslCredentials":
      return tlsSocket(credentials.value, address);
    case "localCredentials":
      if (!address.isLocal)
        problems.error(place.field("local_credentials"), "need a Unix socket or a loopback address");
      return undefined;
    case "googleDefault":
      problems.error(place.field("google_default"), "is not supported; use ssl_credentials");
      return undefined;
    default:
      // Envoy speaks in the clear too where none are given.
      if (google.channelCredentials !== undefined)
        problems.error(place, "ssl_credentials or local_credentials are required");
      return undefined;
  }
}

/** The system's view of authorities is Mozilla's list, which Node carries. */
const publicRoots = (): DataSource =>
  create(DataSourceSchema, { specifier: { case: "inlineString", value: rootCertificates.join("\n") } });

function tlsSocket(ssl: SslCredentials, { serverName }: TargetAddress): Cluster["transportSocket"] {
  const isAddress = isIP(serverName) !== 0;
  const context = create(UpstreamTlsContextSchema, {
    sni: isAddress ? "" : serverName,
    autoSniSanValidation: !isAddress,
    commonTlsContext: {
      // gRPC's own range; Envoy's clusters stop at 1.2 unless told.
      tlsParams: { tlsMinimumProtocolVersion: TlsProtocol.TLSv1_2, tlsMaximumProtocolVersion: TlsProtocol.TLSv1_3 },
      ...((ssl.privateKey ?? ssl.certChain) !== undefined && {
        tlsCertificates: [
          {
            ...(ssl.certChain !== undefined && { certificateChain: ssl.certChain }),
            ...(ssl.privateKey !== undefined && { privateKey: ssl.privateKey }),
          },
        ],
      }),
      validationContextType: {
        case: "validationContext",
        value: {
          trustedCa: ssl.rootCerts ?? publicRoots(),
          ...(isAddress && {
            matchTypedSubjectAltNames: [
              { sanType: SanType.IP_ADDRESS, matcher: { matchPattern: { case: "exact" as const, value: serverName } } },
            ],
          }),
        },
      },
      alpnProtocols: ["h2"],
    },
  });
  return {
    $typeName: "envoy.config.core.v3.TransportSocket",
    name: "envoy.transport_sockets.tls",
    configType: { case: "typedConfig", value: anyPack(UpstreamTlsContextSchema, context) },
  };
}

/** A token goes with each call, and never over a connection that others could read. */
function callCredentials(
  google: GoogleGrpc,
  isSecure: boolean,
  place: Place,
  problems: Problems,
): readonly (readonly [name: string, value: string])[] {
  return google.callCredentials.flatMap((credentials, index) => {
    const at = place.field("call_credentials", index);
    const { credentialSpecifier: specifier } = credentials;
    if (specifier.case !== "accessToken") {
      problems.error(at, "only access_token is supported; or put the header authorization into initial_metadata");
      return [];
    }
    if (!isSecure) problems.error(at, "a token needs ssl_credentials: it would be sent in the clear");
    return [
      ["authorization", `Bearer ${checkHeaderText(specifier.value, at.field("access_token"), problems)}`] as const,
    ];
  });
}
