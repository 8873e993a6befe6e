// Opens a TLS connection to a host and looks at who answers before a byte of a request goes out.
import type { X509Certificate } from "node:crypto";
import net from "node:net";
import tls from "node:tls";
import type { Host } from "../cluster/cluster.ts";
import {
  keyExchangeGroup,
  sessionIdOf,
  type ShownCertificateInfo,
  shownCertificateInfo,
  type UpstreamTlsInfo,
} from "../tls/tls-info.ts";
import type { TlsMaterial } from "../tls/common-tls-context.ts";
import { verifiedEvent } from "../tls/ready-event.ts";
import { staleCertificate } from "../tls/stale-certificate.ts";
import { certificateFailure, TransportFailure } from "../tls/transport-failure.ts";
import type { UpstreamTls } from "../tls/upstream-tls.ts";
import { type PeerOutcome, shownCertificate, verifyPeer } from "../tls/verify-peer.ts";

/** What this connection is for, beside the host. */
export interface TlsConnectOptions {
  /** Of the request (auto_sni), in the place of the configured one. */
  readonly serverName: string | undefined;
  /** auto_san_validation: the certificate must be for `serverName`. */
  readonly verifiesServerName: boolean;
  /** ALPN where the context names no protocols. */
  readonly defaultProtocols: readonly string[];
  /** ALPN whatever the context says; undefined = as above. */
  readonly alpnProtocols?: readonly string[] | undefined;
}

const noCertificate = {} as tls.DetailedPeerCertificate;

/** `connectOptions` are what a plain connection would be opened with. */
export function connectTls(
  host: Host,
  transport: UpstreamTls,
  options: TlsConnectOptions,
  connectOptions: net.NetConnectOpts,
): net.Socket {
  const { context, stats } = transport;
  const material = context.material;
  if (material === undefined) {
    stats.onSecretsNotReady();
    return failedSocket("TLS error: Secret is not supplied by SDS");
  }
  const serverName = options.serverName ?? transport.serverNameFor(host);
  const ofContext = context.alpnProtocols.length > 0 ? context.alpnProtocols : options.defaultProtocols;
  const protocols = options.alpnProtocols ?? ofContext;
  const kept = transport.takeSession(material, host, serverName);
  const socket = tls.connect({
    ...connectOptions,
    secureContext: material.contexts[0]!.secureContext,
    // Names and hashes are verified below, with the chain's outcome; Node alone would compare host names.
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
    // RFC 6066 §3 knows no addresses as server names.
    ...(serverName !== "" && net.isIP(serverName) === 0 && { servername: serverName }),
    ...(protocols.length > 0 && { ALPNProtocols: [...protocols] }),
    ...(kept !== undefined && { session: kept.session }),
  });
  // Node would take the whole chain apart for `checkServerIdentity` (measured: 0.2 of 1.3 ms a handshake).
  socket.getPeerCertificate = () => noCertificate;
  let connectedMs = -1;
  socket.once("connect", () => (connectedMs = performance.now()));
  let verified: X509Certificate | undefined;
  if (transport.keepsSessions) {
    // Node asks OpenSSL for them only where somebody listens during the handshake, and tells of them after
    // `secureConnect`.
    socket.on("session", (next: Buffer) => {
      if (verified !== undefined)
        transport.keepSession(material, host, serverName, { session: next, certificate: verified });
    });
  }
  socket.once("secureConnect", () => {
    const verifies = transport.verifiesServerName || options.verifiesServerName;
    const nowMs = Date.now();
    const isReused = socket.isSessionReused();
    const { certificate: own, chainError } = shownCertificate(socket);
    // OpenSSL has none for a session that it takes up again.
    const certificate = own ?? (isReused ? kept?.certificate : undefined);
    const stale = isReused ? staleCertificate(shownCertificateInfo(certificate), nowMs) : undefined;
    const outcome = verifyPeer(
      { certificate, chainError: chainError ?? stale },
      {
        peerIs: "server",
        requiresCertificate: material.validation !== undefined && !material.validation.acceptsUntrusted,
        expectedDnsName: verifies && serverName !== "" ? serverName : undefined,
        nowMs,
      },
      material.validation,
    );
    if (outcome.ok) {
      stats.onHandshake(socket, outcome.certificate !== undefined);
      verified = outcome.certificate;
      socket.emit(verifiedEvent, new FinishedHandshake(socket, outcome, material, serverName, connectedMs));
      return;
    }
    stats.onPeerFailure(outcome.kind);
    socket.destroy(certificateFailure(outcome.message));
  });
  socket.once("error", (error: NodeJS.ErrnoException) => {
    if (error.code?.startsWith("ERR_SSL_") === true) stats.onConnectionError();
  });
  return socket;
}

/** Certificates are read when somebody asks, which most connections never do. */
class FinishedHandshake implements UpstreamTlsInfo {
  readonly #socket: tls.TLSSocket;
  readonly #certificate: X509Certificate | undefined;
  readonly #material: TlsMaterial;
  readonly peerIsValidated: boolean;
  readonly version: string;
  readonly cipher: string;
  readonly serverName: string;
  readonly connectedMs: number;
  readonly establishedMs = performance.now();

  constructor(
    socket: tls.TLSSocket,
    { certificate, validated }: Extract<PeerOutcome, { ok: true }>,
    material: TlsMaterial,
    serverName: string,
    connectedMs: number,
  ) {
    this.serverName = serverName;
    this.connectedMs = connectedMs;
    this.#socket = socket;
    this.#certificate = certificate;
    this.#material = material;
    this.peerIsValidated = validated;
    this.version = socket.getProtocol() ?? "";
    this.cipher = socket.getCipher().name;
  }

  get startedMs(): number {
    return this.connectedMs;
  }

  get peer(): ShownCertificateInfo {
    return shownCertificateInfo(this.#certificate);
  }

  /** What a host is shown when it asks. */
  get local(): ShownCertificateInfo {
    return shownCertificateInfo(this.#material.certificates[0]?.chain[0]);
  }

  get applicationProtocol(): string {
    const { alpnProtocol } = this.#socket;
    return alpnProtocol === false ? "" : (alpnProtocol ?? "");
  }

  group(): string {
    return keyExchangeGroup(this.#socket);
  }

  sessionId(): string {
    return sessionIdOf(this.#socket);
  }
}

/** A connection that fails in a later turn, as connections do. */
function failedSocket(reason: string): net.Socket {
  const socket = new net.Socket();
  queueMicrotask(() => socket.destroy(new TransportFailure(reason)));
  return socket;
}
