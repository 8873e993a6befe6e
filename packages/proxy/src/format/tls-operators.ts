// Operators of the substitution format that tell of a TLS connection, the client's or the one to a host, and of the
// certificates on it: missing values on a plain one.
import { fieldValue } from "../http/header-value.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { TlsInfo, ShownCertificateInfo } from "../tls/tls-info.ts";
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

type ReadTls = (info: StreamInfo) => TlsInfo | undefined;
type ReadCertificate = (tls: TlsInfo) => ShownCertificateInfo;

const downstream: ReadTls = ({ downstreamTls }) => downstreamTls;
const upstream: ReadTls = ({ upstreamTls }) => upstreamTls;
const peer: ReadCertificate = (tls) => tls.peer;
const local: ReadCertificate = (tls) => tls.local;

function ofTls(tlsOf: ReadTls, read: (tls: TlsInfo) => string): OperatorCompiler {
  return plain((info) => {
    const tls = tlsOf(info);
    return tls && read(tls);
  });
}

const ofChain = (read: (certificate: ShownCertificateInfo) => string): OperatorCompiler =>
  ofTls(downstream, (tls) => tls.peer.chain.map(read).join(","));

/** `(format)` as START_TIME has it. */
function ofTime(tlsOf: ReadTls, read: (peer: ShownCertificateInfo) => number | undefined): OperatorCompiler {
  return (argument) => {
    const format = argument === undefined || argument === "" ? isoTime : compileTimeFormat(argument);
    if (typeof format !== "function") return format;
    const value = (info: StreamInfo): string | undefined => {
      const tls = tlsOf(info);
      const timeMs = tls && read(tls.peer);
      return timeMs === undefined ? undefined : format(timeMs);
    };
    return { value, isNumber: false };
  };
}

/** What Envoy tells of both sides' connections. */
function connectionOperators(side: "DOWNSTREAM" | "UPSTREAM", tlsOf: ReadTls): Record<string, OperatorCompiler> {
  return {
    [`${side}_TLS_VERSION`]: ofTls(tlsOf, ({ version }) => version),
    [`${side}_TLS_CIPHER`]: ofTls(tlsOf, ({ cipher }) => cipher),
    [`${side}_TLS_GROUP`]: ofTls(tlsOf, (tls) => tls.group()),
    [`${side}_TLS_SESSION_ID`]: ofTls(tlsOf, (tls) => tls.sessionId()),
    ...nameOperators(`${side}_PEER`, tlsOf, peer),
    ...nameOperators(`${side}_LOCAL`, tlsOf, local),
    [`${side}_PEER_SUBJECT`]: ofTls(tlsOf, (tls) => tls.peer.subject),
    [`${side}_PEER_ISSUER`]: ofTls(tlsOf, (tls) => tls.peer.issuer),
    [`${side}_PEER_CERT`]: ofTls(tlsOf, (tls) => tls.peer.encodedPem),
    [`${side}_PEER_CERT_V_START`]: ofTime(tlsOf, ({ validFromMs }) => validFromMs),
    [`${side}_PEER_CERT_V_END`]: ofTime(tlsOf, ({ validToMs }) => validToMs),
  };
}

function nameOperators(prefix: string, tlsOf: ReadTls, of: ReadCertificate): Record<string, OperatorCompiler> {
  return {
    [`${prefix}_URI_SAN`]: ofTls(tlsOf, (tls) => of(tls).uriSans.join(",")),
    [`${prefix}_DNS_SAN`]: ofTls(tlsOf, (tls) => of(tls).dnsSans.join(",")),
    [`${prefix}_IP_SAN`]: ofTls(tlsOf, (tls) => of(tls).ipSans.join(",")),
  };
}

export const tlsOperators: Readonly<Record<string, OperatorCompiler>> = {
  ...connectionOperators("DOWNSTREAM", downstream),
  ...connectionOperators("UPSTREAM", upstream),
  UPSTREAM_SERVER_NAME: plain(({ upstreamTls }) => upstreamTls?.serverName),
  TLS_JA3_FINGERPRINT: plain(({ listener }) => listener?.ja3Fingerprint),
  TLS_JA4_FINGERPRINT: plain(({ listener }) => listener?.ja4Fingerprint),
  DOWNSTREAM_TRANSPORT_FAILURE_REASON: plain((info) => info.downstreamTransportFailureReason?.replaceAll(" ", "_")),
  DOWNSTREAM_PEER_EMAIL_SAN: ofTls(downstream, (tls) => tls.peer.emailSans.join(",")),
  DOWNSTREAM_PEER_FINGERPRINT_256: ofTls(downstream, (tls) => tls.peer.fingerprint256),
  DOWNSTREAM_PEER_FINGERPRINT_1: ofTls(downstream, (tls) => tls.peer.fingerprint1),
  DOWNSTREAM_PEER_SERIAL: ofTls(downstream, (tls) => tls.peer.serialNumber),
  DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256: ofChain(({ fingerprint256 }) => fingerprint256),
  DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1: ofChain(({ fingerprint1 }) => fingerprint1),
  DOWNSTREAM_PEER_CHAIN_SERIALS: ofChain(({ serialNumber }) => serialNumber),
  DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256: ofTls(downstream, (tls) => tls.peer.chain[1]?.fingerprint256 ?? ""),
  DOWNSTREAM_PEER_ISSUER_SERIAL: ofTls(downstream, (tls) => tls.peer.chain[1]?.serialNumber ?? ""),
  DOWNSTREAM_LOCAL_EMAIL_SAN: ofTls(downstream, (tls) => tls.local.emailSans.join(",")),
  DOWNSTREAM_LOCAL_SUBJECT: ofTls(downstream, (tls) => tls.local.subject),
};
