// Rows of TLS (extensions.transport_sockets.tls.v3): a rule about certificates that is not enforced must refuse the
// resource.
import { SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import {
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/tls_pb";
import { checkedMessage } from "../fields/checked-message.ts";
import type { FieldRows } from "../fields/field-row.ts";
import { matcherFields } from "../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../fields/shared-fields.ts";

const tls = "envoy.extensions.transport_sockets.tls.v3";

const tlsFields: FieldRows = {
  [`${tls}.UpstreamTlsContext`]: {
    used: "common_tls_context sni auto_host_sni auto_sni_san_validation max_session_keys",
    harmless: {
      allow_renegotiation: "OpenSSL renegotiates with nobody here, which TLS 1.3 has abolished",
      enforce_rsa_key_usage: "OpenSSL always enforces it",
    },
  },
  [`${tls}.DownstreamTlsContext`]: {
    used: `common_tls_context require_client_certificate require_sni disable_stateless_session_resumption
      session_timeout full_scan_certs_on_sni_mismatch prefer_client_ciphers`,
    harmless: { disable_stateful_session_resumption: "sessions are resumed by tickets alone" },
    warned: { ocsp_staple_policy: "responses of OCSP are not stapled" },
  },
  [`${tls}.CommonTlsContext`]: {
    used: `tls_params tls_certificates tls_certificate_sds_secret_configs validation_context
      validation_context_sds_secret_config combined_validation_context alpn_protocols`,
    warned: { key_log: "keys are never logged" },
  },
  [`${tls}.CommonTlsContext.CombinedCertificateValidationContext`]: {
    used: "default_validation_context validation_context_sds_secret_config",
  },
  [`${tls}.TlsParameters`]: {
    used: `tls_minimum_protocol_version tls_maximum_protocol_version cipher_suites ecdh_curves signature_algorithms`,
  },
  [`${tls}.TlsCertificate`]: {
    used: "certificate_chain private_key password watched_directory",
    warned: {
      ocsp_staple: "responses of OCSP are not stapled",
      signed_certificate_timestamp: "is not sent",
    },
  },
  [`${tls}.CertificateValidationContext`]: {
    used: `trusted_ca verify_certificate_spki verify_certificate_hash match_typed_subject_alt_names
      match_subject_alt_names crl allow_expired_certificate trust_chain_verification only_verify_leaf_cert_crl
      max_verify_depth watched_directory`,
    warned: {
      suppress_client_ca_list: "the names of the trusted authorities are sent",
    },
  },
  [`${tls}.SubjectAltNameMatcher`]: { used: "san_type matcher" },
  [`${tls}.Secret`]: {
    used: "name tls_certificate validation_context generic_secret",
    told: "session_ticket_keys",
  },
  [`${tls}.GenericSecret`]: { used: "secret" },
};

const tables = [tlsFields, matcherFields, sharedFields] as const;

export const secretMessage = checkedMessage(SecretSchema, ...tables);
export const downstreamTlsMessage = checkedMessage(DownstreamTlsContextSchema, ...tables);
export const upstreamTlsMessage = checkedMessage(UpstreamTlsContextSchema, ...tables);
