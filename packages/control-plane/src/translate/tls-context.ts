// TLS contexts as a proxy gets them: which secrets it presents, whom it believes, which versions it speaks. No key
// material passes here: contexts name secrets, and the agent (or, for gateways, this control plane) serves those by
// SDS.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { isIP } from "node:net";
import {
  ApiConfigSource_ApiType,
  ApiVersion,
  type ConfigSource,
  ConfigSourceSchema,
} from "@tulle/xds/envoy/config/core/v3/config_source_pb";
import { type TransportSocket, TransportSocketSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { RawBufferSchema } from "@tulle/xds/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb";
import {
  type SdsSecretConfig,
  SdsSecretConfigSchema,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import {
  type SubjectAltNameMatcherSchema,
  SubjectAltNameMatcher_SanType as SanType,
  type TlsParameters,
  TlsParametersSchema,
  TlsParameters_TlsProtocol as TlsProtocol,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/common_pb";
import {
  type CommonTlsContextSchema,
  type DownstreamTlsContext,
  DownstreamTlsContextSchema,
  type UpstreamTlsContext,
  UpstreamTlsContextSchema,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/tls_pb";
import type { TlsVersion } from "../snapshot/mesh-snapshot.ts";
import { adsConfigSource, noTimeout, pack } from "./messages.ts";

/**
 * The workload's own certificate and key, and the roots of its trust domain, as the agent names them (Istio's names).
 */
export const workloadSecret = "default";
export const rootsSecret = "ROOTCA";

/** Static cluster of every bootstrap: the agent's Unix socket. */
const sdsCluster = "sds-grpc";

/** What the mesh's HTTP servers choose from. */
export const httpServerAlpn: readonly string[] = ["h2", "http/1.1"];

/** What clients of the mesh offer where they have something else than HTTP to send, and where it is HTTP. */
export const meshTcpClientAlpn: readonly string[] = ["istio", "istio-peer-exchange"];
export const meshHttpClientAlpn: readonly string[] = ["istio-http/1.0", "istio-http/1.1", "istio-h2"];
/** By these a server that also takes plain connections knows a client of the mesh (Istio: allIstioMtlsALPNs). */
export const meshClientAlpn: readonly string[] = [...meshTcpClientAlpn, ...meshHttpClientAlpn];
/** What the HTTP inspector calls plain HTTP. */
export const plainHttpAlpn: readonly string[] = ["http/1.0", "http/1.1", "h2c"];

/**
 * Workloads speak TLS 1.3 among themselves unless `minimum` says otherwise. Istio begins at 1.2, for Envoys that know
 * no better as clients: they stop at 1.2 unless told (TlsParameters.tls_maximum_protocol_version), and every client of
 * this mesh is told.
 */
const workloadMinimum: TlsVersion = "TLSV1_3";

const protocols = { TLSV1_2: TlsProtocol.TLSv1_2, TLSV1_3: TlsProtocol.TLSv1_3 } as const;

export function tlsParams(minimum: TlsVersion): TlsParameters {
  return create(TlsParametersSchema, {
    tlsMinimumProtocolVersion: protocols[minimum],
    tlsMaximumProtocolVersion: TlsProtocol.TLSv1_3,
  });
}

/**
 * A secret of the agent beside the proxy: `default`, `ROOTCA`. Proxies wait for it, since without it nothing may pass.
 */
export function sdsSecretConfig(name: string): SdsSecretConfig {
  return create(SdsSecretConfigSchema, { name, sdsConfig: agentConfigSource() });
}

/**
 * A secret of the control plane, by the proxy's own stream: `kubernetes://<secret>`, `kubernetes://<secret>-cacert`.
 */
export function adsSecretConfig(name: string): SdsSecretConfig {
  const { configSourceSpecifier, resourceApiVersion } = adsConfigSource();
  // The fetch time limit stays Envoy's: a secret that nobody has must not hold back the listener's other chains for
  // ever.
  return create(SdsSecretConfigSchema, { name, sdsConfig: { configSourceSpecifier, resourceApiVersion } });
}

function agentConfigSource(): ConfigSource {
  return create(ConfigSourceSchema, {
    configSourceSpecifier: {
      case: "apiConfigSource",
      value: {
        apiType: ApiConfigSource_ApiType.GRPC,
        transportApiVersion: ApiVersion.V3,
        setNodeOnFirstMessageOnly: true,
        grpcServices: [{ targetSpecifier: { case: "envoyGrpc", value: { clusterName: sdsCluster } } }],
      },
    },
    initialFetchTimeout: noTimeout(),
    resourceApiVersion: ApiVersion.V3,
  });
}

/** A name as `subjectAltNames` fields of resources have it: its form tells its type. */
export function exactName(name: string): MessageInitShape<typeof SubjectAltNameMatcherSchema> {
  return { sanType: nameType(name), matcher: { matchPattern: { case: "exact", value: name } } };
}

function nameType(name: string): SanType {
  if (name.includes("://")) return SanType.URI;
  if (isIP(name) > 0) return SanType.IP_ADDRESS;
  return name.includes("@") ? SanType.EMAIL : SanType.DNS;
}

/** Any workload of the trust domain, and none of another one whose root happens to be trusted too. */
function anyWorkload(trustDomain: string): MessageInitShape<typeof SubjectAltNameMatcherSchema> {
  return { sanType: SanType.URI, matcher: { matchPattern: { case: "prefix", value: `spiffe://${trustDomain}/` } } };
}

interface WorkloadTls {
  readonly trustDomain: string;
  /** Names of which the peer has to have one; those of any workload of the trust domain when empty. */
  readonly subjectAltNames?: readonly string[];
  readonly alpn: readonly string[];
  readonly minimum?: TlsVersion | undefined;
}

function workloadContext(options: WorkloadTls): MessageInitShape<typeof CommonTlsContextSchema> {
  const { trustDomain, subjectAltNames = [], alpn, minimum = workloadMinimum } = options;
  const names = subjectAltNames.length === 0 ? [anyWorkload(trustDomain)] : subjectAltNames.map(exactName);
  return {
    tlsParams: tlsParams(minimum),
    tlsCertificateSdsSecretConfigs: [sdsSecretConfig(workloadSecret)],
    validationContextType: {
      case: "combinedValidationContext",
      value: {
        defaultValidationContext: { matchTypedSubjectAltNames: names },
        validationContextSdsSecretConfig: sdsSecretConfig(rootsSecret),
      },
    },
    alpnProtocols: [...alpn],
  };
}

/** A workload's side that takes connections: callers show a certificate of the mesh or are turned away. */
export function workloadServerTls(options: WorkloadTls): DownstreamTlsContext {
  return create(DownstreamTlsContextSchema, {
    commonTlsContext: workloadContext(options),
    requireClientCertificate: true,
  });
}

/** A workload's side that opens connections: `subjectAltNames` are the identities that the server may have. */
export function istioMutualTls(options: WorkloadTls & { readonly sni: string }): UpstreamTlsContext {
  return create(UpstreamTlsContextSchema, { commonTlsContext: workloadContext(options), sni: options.sni });
}

export function downstreamTlsSocket(context: DownstreamTlsContext): TransportSocket {
  return tlsSocket(pack(DownstreamTlsContextSchema, context));
}

export function upstreamTlsSocket(context: UpstreamTlsContext): TransportSocket {
  return tlsSocket(pack(UpstreamTlsContextSchema, context));
}

function tlsSocket(value: ReturnType<typeof pack>): TransportSocket {
  return create(TransportSocketSchema, {
    name: "envoy.transport_sockets.tls",
    configType: { case: "typedConfig", value },
  });
}

export function rawSocket(): TransportSocket {
  return create(TransportSocketSchema, {
    name: "envoy.transport_sockets.raw_buffer",
    configType: { case: "typedConfig", value: pack(RawBufferSchema, {}) },
  });
}
