// Why a TLS connection did not come about, in the words that Envoy writes into its access log
// (`TLS_error:|268435581:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:…:TLS_error_end`).

/** Its message is the whole reason. */
export class TransportFailure extends Error {
  override readonly name = "TransportFailure";
}

/** BoringSSL packs the library's number (16, SSL) and the reason's into the code. */
const sslLibrary = 16 * 2 ** 24;

/** BoringSSL's reasons by what Node calls OpenSSL's. Alerts are 1000 and their number (RFC 8446 §6). */
const reasons: Readonly<Record<string, readonly [number, string]>> = {
  "SSL/TLS_ALERT_HANDSHAKE_FAILURE": [1040, "SSLV3_ALERT_HANDSHAKE_FAILURE"],
  SSLV3_ALERT_HANDSHAKE_FAILURE: [1040, "SSLV3_ALERT_HANDSHAKE_FAILURE"],
  "SSL/TLS_ALERT_BAD_CERTIFICATE": [1042, "SSLV3_ALERT_BAD_CERTIFICATE"],
  SSLV3_ALERT_BAD_CERTIFICATE: [1042, "SSLV3_ALERT_BAD_CERTIFICATE"],
  "SSL/TLS_ALERT_CERTIFICATE_REVOKED": [1044, "SSLV3_ALERT_CERTIFICATE_REVOKED"],
  SSLV3_ALERT_CERTIFICATE_REVOKED: [1044, "SSLV3_ALERT_CERTIFICATE_REVOKED"],
  "SSL/TLS_ALERT_CERTIFICATE_EXPIRED": [1045, "SSLV3_ALERT_CERTIFICATE_EXPIRED"],
  SSLV3_ALERT_CERTIFICATE_EXPIRED: [1045, "SSLV3_ALERT_CERTIFICATE_EXPIRED"],
  "SSL/TLS_ALERT_CERTIFICATE_UNKNOWN": [1046, "SSLV3_ALERT_CERTIFICATE_UNKNOWN"],
  SSLV3_ALERT_CERTIFICATE_UNKNOWN: [1046, "SSLV3_ALERT_CERTIFICATE_UNKNOWN"],
  TLSV1_ALERT_UNKNOWN_CA: [1048, "TLSV1_ALERT_UNKNOWN_CA"],
  TLSV1_ALERT_ACCESS_DENIED: [1049, "TLSV1_ALERT_ACCESS_DENIED"],
  TLSV1_ALERT_DECRYPT_ERROR: [1051, "TLSV1_ALERT_DECRYPT_ERROR"],
  TLSV1_ALERT_PROTOCOL_VERSION: [1070, "TLSV1_ALERT_PROTOCOL_VERSION"],
  TLSV1_ALERT_INTERNAL_ERROR: [1080, "TLSV1_ALERT_INTERNAL_ERROR"],
  TLSV1_UNRECOGNIZED_NAME: [1112, "TLSV1_UNRECOGNIZED_NAME"],
  TLSV1_BAD_CERTIFICATE_HASH_VALUE: [1114, "TLSV1_BAD_CERTIFICATE_HASH_VALUE"],
  TLSV13_ALERT_CERTIFICATE_REQUIRED: [1116, "TLSV1_CERTIFICATE_REQUIRED"],
  TLSV1_ALERT_NO_APPLICATION_PROTOCOL: [1120, "TLSV1_ALERT_NO_APPLICATION_PROTOCOL"],
  WRONG_VERSION_NUMBER: [247, "WRONG_VERSION_NUMBER"],
  PACKET_LENGTH_TOO_LONG: [247, "WRONG_VERSION_NUMBER"],
  UNSUPPORTED_PROTOCOL: [240, "UNSUPPORTED_PROTOCOL"],
  NO_PROTOCOLS_AVAILABLE: [240, "UNSUPPORTED_PROTOCOL"],
  NO_SHARED_CIPHER: [184, "NO_SHARED_CIPHER"],
  HTTP_REQUEST: [156, "HTTP_REQUEST"],
};

const missingCertificate = "PEER_DID_NOT_RETURN_A_CERTIFICATE";

function tlsError(number: number, name: string, detail = ""): string {
  const words = `SSL routines:OPENSSL_internal:${name}`;
  return `TLS_error:|${sslLibrary + number}:${words}${detail === "" ? "" : `:${detail}`}:TLS_error_end`;
}

/** `detail` is the outcome of `verifyPeer`. */
export function certificateFailure(detail: string): TransportFailure {
  return new TransportFailure(tlsError(125, "CERTIFICATE_VERIFY_FAILED", detail));
}

/** The reason of a failed handshake; undefined for what is no error of TLS, such as a refused connection. */
export function tlsErrorText(error: NodeJS.ErrnoException): string | undefined {
  if (error instanceof TransportFailure) return error.message;
  const name = /^ERR_SSL_(.+)$/.exec(error.code ?? "")?.[1];
  if (name === undefined) return undefined;
  const known = reasons[name];
  if (name === missingCertificate) return tlsError(192, name, "peer did not provide required client certificate");
  return known === undefined ? tlsError(0, name) : tlsError(known[0], known[1]);
}
