// How connections to a cluster's endpoints are encrypted: as the DestinationRule says, else with the mesh's
// certificates wherever the endpoint takes them (Istio: auto mTLS, ClusterBuilder.buildUpstreamTLSSettings).
import { create } from "@bufbuild/protobuf";
import type { ClientTls } from "@tulle/config";
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import {
  type Cluster_TransportSocketMatch,
  Cluster_TransportSocketMatchSchema,
} from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { type DataSource, DataSourceSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import {
  CertificateValidationContextSchema,
  TlsCertificateSchema,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/common_pb";
import {
  type CommonTlsContext,
  CommonTlsContext_CombinedCertificateValidationContextSchema,
  CommonTlsContextSchema,
  UpstreamTlsContextSchema,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/tls_pb";
import type { OutboundCluster } from "./outbound-clusters.ts";
import type { TlsVersion } from "../snapshot/mesh-snapshot.ts";
import { sniName } from "../names/resource-names.ts";
import { adsSecretConfig, exactName, istioMutualTls, rawSocket, tlsParams, upstreamTlsSocket } from "./tls-context.ts";
import { meshAlpn, type UpstreamProtocol } from "./upstream-protocol.ts";

/** A cluster, and what it speaks. */
export type SpokenCluster = OutboundCluster & { readonly protocol: UpstreamProtocol };

/** What a proxy's clusters have in common. */
export interface ClusterContext {
  readonly type: "sidecar" | "router";
  /** See `MeshSnapshot.trustDomain`. */
  readonly trustDomain?: string | undefined;
  readonly minimumTls?: TlsVersion | undefined;
  /** See `Proxy.withoutCertificate`. Endpoints that plain text is not for are left out: `OutboundCluster.reach`. */
  readonly withoutCertificate?: boolean;
  /** See `SidecarClusters`. */
  readonly isCaptured?: boolean;
  /** Of the control plane: see `EndpointsSection`. */
  readonly clusterId?: string;
}

export interface UpstreamTls extends Partial<Pick<Cluster, "transportSocket" | "transportSocketMatches">> {
  /** The name in the request's Host is sent, and asked for in the server's certificate. */
  readonly autoSni?: boolean;
  readonly autoSanValidation?: boolean;
}

/** Where the machine's authorities lie on Debian, Alpine and what comes from them; Envoy looks for none itself. */
export const machineRoots = "/etc/ssl/certs/ca-certificates.crt";

/** Metadata of endpoints by which a proxy picks the socket (Istio: model.TLSModeLabelShortname). */
export const tlsModeKey = "tlsMode";

/** Of the socket for endpoints that take mutual TLS (Istio's name). */
export const mutualTlsMatch = "tlsMode-istio";

export function upstreamTls(cluster: SpokenCluster, context: ClusterContext, tls: ClientTls | undefined): UpstreamTls {
  if (tls === undefined) return autoMutualTls(cluster, context);
  switch (tls.mode) {
    case "ISTIO_MUTUAL":
      return meshTls(cluster, context, tls);
    case "SIMPLE":
    case "MUTUAL":
      return originatedTls(cluster, context, tls);
    default:
      return {};
  }
}

function autoMutualTls(cluster: SpokenCluster, context: ClusterContext): UpstreamTls {
  if (context.trustDomain === undefined || context.withoutCertificate === true) return {};
  if (cluster.service.entry?.isExternal === true) return {};
  const match = (
    name: string,
    fields: Cluster_TransportSocketMatch["match"],
    transportSocket: ReturnType<typeof rawSocket>,
  ) => create(Cluster_TransportSocketMatchSchema, { name, match: fields ?? {}, transportSocket });
  return {
    transportSocketMatches: [
      match(mutualTlsMatch, { [tlsModeKey]: "istio" }, meshSocket(cluster, context.trustDomain, context, {})),
      match("tlsMode-disabled", {}, rawSocket()),
    ],
  };
}

/**
 * Without an authority there is no certificate to show: then it stays plain text, which the finding IST0167 tells. A
 * proxy that has none in a mesh with an authority reaches no endpoint.
 */
function meshTls(cluster: SpokenCluster, context: ClusterContext, tls: ClientTls): UpstreamTls {
  const { trustDomain, withoutCertificate } = context;
  return trustDomain === undefined || withoutCertificate === true
    ? {}
    : { transportSocket: meshSocket(cluster, trustDomain, context, tls) };
}

function meshSocket(
  { service, port, subset, protocol }: SpokenCluster,
  trustDomain: string,
  { minimumTls }: ClusterContext,
  tls: ClientTls,
) {
  const context = istioMutualTls({
    trustDomain,
    minimum: minimumTls,
    sni: tls.sni ?? sniName(service.hostname, port.number, subset?.name),
    subjectAltNames: tls.subjectAltNames ?? service.identities ?? [],
    alpn: meshAlpn(protocol),
  });
  return upstreamTlsSocket(context);
}

/**
 * SIMPLE and MUTUAL: towards servers whose certificates are not the mesh's (Istio: constructUpstreamTLS). A
 * ServiceEntry says names of its servers, too.
 */
function originatedTls({ protocol, service }: SpokenCluster, context: ClusterContext, rule: ClientTls): UpstreamTls {
  const { subjectAltNames: known = [] } = service.entry ?? {};
  const tls = (rule.subjectAltNames ?? []).length > 0 ? rule : { ...rule, subjectAltNames: known };
  const getsSecrets = context.type === "router" && context.withoutCertificate !== true;
  const { subjectAltNames = [], sni, insecureSkipVerify = false } = tls;
  const tlsContext = create(UpstreamTlsContextSchema, {
    commonTlsContext: create(CommonTlsContextSchema, {
      tlsParams: tlsParams("TLSV1_2"),
      ...ownCertificate(tls, getsSecrets),
      validationContextType: serverCheck(tls, getsSecrets),
      alpnProtocols: protocol === "http2" ? ["h2"] : [],
    }),
    sni: sni ?? "",
  });
  return {
    transportSocket: upstreamTlsSocket(tlsContext),
    autoSni: sni === undefined,
    autoSanValidation: sni === undefined && subjectAltNames.length === 0 && !insecureSkipVerify,
  };
}

type TlsContext = Pick<
  CommonTlsContext,
  "tlsCertificates" | "tlsCertificateSdsSecretConfigs" | "validationContextType"
>;

function ownCertificate(tls: ClientTls, getsSecrets: boolean): Partial<TlsContext> {
  if (tls.mode !== "MUTUAL") return {};
  const { clientCertificate, privateKey, credentialName } = tls;
  if (clientCertificate !== undefined && privateKey !== undefined) {
    const files = { certificateChain: file(clientCertificate), privateKey: file(privateKey) };
    return { tlsCertificates: [create(TlsCertificateSchema, files)] };
  }
  if (credentialName === undefined || !getsSecrets) return {};
  return { tlsCertificateSdsSecretConfigs: [adsSecretConfig(`kubernetes://${credentialName}`)] };
}

/**
 * A sidecar gets no Secret (as in Istio, where it then sends plain text), nor a gateway without a certificate. It asks
 * for a certificate that the machine trusts, and shows none of its own: what the rule wants encrypted is never sent in
 * the clear.
 */
function serverCheck(tls: ClientTls, getsSecrets: boolean): TlsContext["validationContextType"] {
  const { subjectAltNames = [], credentialName, caCertificates, caCrl, insecureSkipVerify = false } = tls;
  const names = { matchTypedSubjectAltNames: insecureSkipVerify ? [] : subjectAltNames.map(exactName) };
  if (insecureSkipVerify)
    return { case: "validationContext", value: create(CertificateValidationContextSchema, names) };
  if (credentialName !== undefined && getsSecrets) {
    const value = create(CommonTlsContext_CombinedCertificateValidationContextSchema, {
      defaultValidationContext: names,
      validationContextSdsSecretConfig: adsSecretConfig(`kubernetes://${credentialName}-cacert`),
    });
    return { case: "combinedValidationContext", value };
  }
  const value = create(CertificateValidationContextSchema, {
    ...names,
    trustedCa: file(caCertificates ?? machineRoots),
    ...(caCrl === undefined ? {} : { crl: file(caCrl) }),
  });
  return { case: "validationContext", value };
}

function file(filename: string): DataSource {
  return create(DataSourceSchema, { specifier: { case: "filename", value: filename } });
}
