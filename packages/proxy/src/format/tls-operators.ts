// Operators of the substitution format that tell of the client's TLS connection and of the certificates on it: missing values
// on a plain one.
import { fieldValue } from "../http/header-value.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { DownstreamTlsInfo, ShownCertificateInfo } from "../connection/tls-info.ts";
import type { OperatorCompiler } from "./operator.ts";
import { compileTimeFormat, isoTime } from "./start-time.ts";

const plain = (read: (info: StreamInfo) => string | undefined): OperatorCompiler => {
  return (argument) => {
    if (argument !== undefined) return { error: "takes no argument" };
    const value = (info: StreamInfo): string | undefined => {
      const text = read(info);
      // What stands in a certificate or a hello is a stranger's text.
      return text === undefined || text === "" ? undefined : fieldValue(text);
    };
    return { value, isNumber: false };
  };
};

const ofTls = (read: (tls: DownstreamTlsInfo) => string): OperatorCompiler =>
  plain(({ downstreamTls }) => downstreamTls && read(downstreamTls));

const ofPeer = (read: (peer: ShownCertificateInfo) => string): OperatorCompiler => ofTls(({ peer }) => read(peer));
const ofLocal = (read: (local: ShownCertificateInfo) => string): OperatorCompiler => ofTls(({ local }) => read(local));

/** `(format)` as START_TIME has it. */
function ofTime(read: (peer: ShownCertificateInfo) => number | undefined): OperatorCompiler {
  return (argument) => {
    const format = argument === undefined || argument === "" ? isoTime : compileTimeFormat(argument);
    if (typeof format !== "function") return format;
    const value = ({ downstreamTls }: StreamInfo): string | undefined => {
      const timeMs = downstreamTls && read(downstreamTls.peer);
      return timeMs === undefined ? undefined : format(timeMs);
    };
    return { value, isNumber: false };
  };
}

export const tlsOperators: Readonly<Record<string, OperatorCompiler>> = {
  DOWNSTREAM_TRANSPORT_FAILURE_REASON: plain((info) => info.downstreamTransportFailureReason?.replaceAll(" ", "_")),
  DOWNSTREAM_TLS_VERSION: ofTls(({ version }) => version),
  DOWNSTREAM_TLS_CIPHER: ofTls(({ cipher }) => cipher),
  DOWNSTREAM_TLS_SESSION_ID: ofTls((tls) => tls.sessionId()),
  DOWNSTREAM_PEER_URI_SAN: ofPeer(({ uriSans }) => uriSans.join(",")),
  DOWNSTREAM_PEER_DNS_SAN: ofPeer(({ dnsSans }) => dnsSans.join(",")),
  DOWNSTREAM_PEER_IP_SAN: ofPeer(({ ipSans }) => ipSans.join(",")),
  DOWNSTREAM_PEER_EMAIL_SAN: ofPeer(({ emailSans }) => emailSans.join(",")),
  DOWNSTREAM_PEER_SUBJECT: ofPeer(({ subject }) => subject),
  DOWNSTREAM_PEER_ISSUER: ofPeer(({ issuer }) => issuer),
  DOWNSTREAM_PEER_FINGERPRINT_256: ofPeer(({ fingerprint256 }) => fingerprint256),
  DOWNSTREAM_PEER_FINGERPRINT_1: ofPeer(({ fingerprint1 }) => fingerprint1),
  DOWNSTREAM_PEER_SERIAL: ofPeer(({ serialNumber }) => serialNumber),
  DOWNSTREAM_PEER_CERT: ofPeer(({ encodedPem }) => encodedPem),
  DOWNSTREAM_PEER_CERT_V_START: ofTime(({ validFromMs }) => validFromMs),
  DOWNSTREAM_PEER_CERT_V_END: ofTime(({ validToMs }) => validToMs),
  DOWNSTREAM_LOCAL_URI_SAN: ofLocal(({ uriSans }) => uriSans.join(",")),
  DOWNSTREAM_LOCAL_DNS_SAN: ofLocal(({ dnsSans }) => dnsSans.join(",")),
  DOWNSTREAM_LOCAL_IP_SAN: ofLocal(({ ipSans }) => ipSans.join(",")),
  DOWNSTREAM_LOCAL_EMAIL_SAN: ofLocal(({ emailSans }) => emailSans.join(",")),
  DOWNSTREAM_LOCAL_SUBJECT: ofLocal(({ subject }) => subject),
};
