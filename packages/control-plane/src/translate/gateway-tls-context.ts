// The TLS of a Gateway's server as Envoy's DownstreamTlsContext, as Istio's BuildListenerTLSContext makes it. Secrets
// are named, and served by SDS over the gateway's own stream; files are read by the proxy itself.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { authoritiesSuffix, serverCredentialNames, usableCipherSuites } from "@tulle/config";
import {
  type CertificateValidationContextSchema,
  TlsParameters_TlsProtocol as TlsProtocol,
  type TlsParametersSchema,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/common_pb";
import {
  type CommonTlsContextSchema,
  type DownstreamTlsContext,
  DownstreamTlsContextSchema,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/tls_pb";
import type { GatewayChainTls } from "../scope/gateway-view.ts";
import { adsSecretConfig, exactName, workloadServerTls } from "./tls-context.ts";

export const credentialScheme = "kubernetes://";

type CommonContext = MessageInitShape<typeof CommonTlsContextSchema> & { $typeName?: never };
type ValidationContext = MessageInitShape<typeof CertificateValidationContextSchema> & { $typeName?: never };
type OwnCertificateTls = Exclude<GatewayChainTls, { readonly mode: "ISTIO_MUTUAL" }>;

/** What HTTPS clients are offered. */
export const gatewayHttpAlpn: readonly string[] = ["h2", "http/1.1"];

const protocols = {
  TLS_AUTO: undefined,
  TLSV1_0: TlsProtocol.TLSv1_0,
  TLSV1_1: TlsProtocol.TLSv1_1,
  TLSV1_2: TlsProtocol.TLSv1_2,
  TLSV1_3: TlsProtocol.TLSv1_3,
} as const;

/** `alpn` is empty for bytes that nobody here reads: what they are is between client and application. */
export function gatewayTls(tls: GatewayChainTls, alpn: readonly string[]): DownstreamTlsContext {
  if (tls.mode === "ISTIO_MUTUAL") {
    const { trustDomain, subjectAltNames, minimumTls } = tls;
    const minimum = tls.minProtocolVersion === "TLSV1_2" ? "TLSV1_2" : minimumTls;
    return workloadServerTls({
      trustDomain,
      ...(subjectAltNames === undefined ? {} : { subjectAltNames }),
      alpn,
      minimum,
    });
  }
  return create(DownstreamTlsContextSchema, {
    commonTlsContext: {
      tlsParams: tlsParams(tls),
      ...certificate(tls),
      ...validation(tls),
      alpnProtocols: [...alpn],
    },
    requireClientCertificate: tls.mode === "MUTUAL",
  });
}

/** TLS 1.2 and 1.3 unless told otherwise; Envoy as a server begins at 1.2 by itself. */
function tlsParams(tls: OwnCertificateTls): MessageInitShape<typeof TlsParametersSchema> {
  const { minProtocolVersion = "TLS_AUTO", maxProtocolVersion = "TLS_AUTO", cipherSuites = [] } = tls;
  return {
    tlsMinimumProtocolVersion: protocols[minProtocolVersion] ?? TlsProtocol.TLSv1_2,
    tlsMaximumProtocolVersion: protocols[maxProtocolVersion] ?? TlsProtocol.TLSv1_3,
    cipherSuites: [...usableCipherSuites(cipherSuites)],
  };
}

function certificate(tls: OwnCertificateTls): CommonContext {
  const { tlsCertificates = [{ serverCertificate: tls.serverCertificate, privateKey: tls.privateKey }] } = tls;
  const names = serverCredentialNames(tls);
  if (names.length > 0) {
    return { tlsCertificateSdsSecretConfigs: names.map((name) => adsSecretConfig(credentialResource(name))) };
  }
  return {
    tlsCertificates: tlsCertificates.map(({ serverCertificate = "", privateKey = "" }) => ({
      certificateChain: file(serverCertificate),
      privateKey: file(privateKey),
    })),
  };
}

function validation(tls: OwnCertificateTls): CommonContext {
  const checks: ValidationContext = {
    verifyCertificateSpki: [...(tls.verifyCertificateSpki ?? [])],
    verifyCertificateHash: [...(tls.verifyCertificateHash ?? [])],
  };
  if (tls.mode === "SIMPLE") {
    const isEmpty = checks.verifyCertificateSpki?.length === 0 && checks.verifyCertificateHash?.length === 0;
    return isEmpty ? {} : { validationContextType: { case: "validationContext", value: checks } };
  }
  const named: ValidationContext = { ...checks, matchTypedSubjectAltNames: (tls.subjectAltNames ?? []).map(exactName) };
  const [credentialName] = serverCredentialNames(tls);
  if (credentialName === undefined) {
    const value: ValidationContext = {
      ...named,
      trustedCa: file(tls.caCertificates ?? ""),
      ...(tls.caCrl === undefined ? {} : { crl: file(tls.caCrl) }),
    };
    return { validationContextType: { case: "validationContext", value } };
  }
  return {
    validationContextType: {
      case: "combinedValidationContext",
      value: {
        defaultValidationContext: {
          ...named,
          // A list in the Secret beats one in a file: the two messages are merged (Envoy: combined_validation_context).
          ...(tls.caCrl === undefined ? {} : { crl: file(tls.caCrl) }),
        },
        validationContextSdsSecretConfig: adsSecretConfig(`${credentialResource(credentialName)}${authoritiesSuffix}`),
      },
    },
  };
}

/** Name of a Secret's SDS resource (Istio: credentials.ToResourceName). */
function credentialResource(credentialName: string): string {
  return credentialName.startsWith(credentialScheme) ? credentialName : `${credentialScheme}${credentialName}`;
}

function file(filename: string): { readonly specifier: { readonly case: "filename"; readonly value: string } } {
  return { specifier: { case: "filename", value: filename } };
}
