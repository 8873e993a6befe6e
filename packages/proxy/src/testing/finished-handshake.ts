// What is known of a TLS connection after a handshake that never was, for tests of what reads it.
import { ShownCertificateInfo, type UpstreamTlsInfo } from "../tls/tls-info.ts";

function certificate(uri: string): ShownCertificateInfo {
  return Object.assign(new ShownCertificateInfo(undefined), { uriSans: [uri, "spiffe://second"] });
}

export function finishedHandshake(peerUri: string, localUri: string, peerIsValidated: boolean): UpstreamTlsInfo {
  return {
    peer: certificate(peerUri),
    local: certificate(localUri),
    peerIsValidated,
    version: "TLSv1.3",
    cipher: "TLS_AES_128_GCM_SHA256",
    applicationProtocol: "",
    establishedMs: 0,
    startedMs: 0,
    connectedMs: 0,
    serverName: "",
    group: () => "",
    sessionId: () => "",
  };
}
