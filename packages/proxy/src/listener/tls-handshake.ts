// The server's side of one TLS handshake: from an accepted socket to one that carries a verified client's bytes. No
// byte of the client's is passed on before its certificate has been judged.
import type { Socket } from "node:net";
import { type SecureContext, TLSSocket, type TLSSocketOptions } from "node:tls";
import type { ConnectionInfo } from "./connection-info.ts";
import type { DataPath } from "../worker/data-path.ts";
import type { DownstreamConnection } from "./downstream-connection.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import { keyExchangeGroup, sessionIdOf, shownCertificateInfo } from "../tls/tls-info.ts";
import type { DownstreamTls } from "../tls/downstream-tls.ts";
import type { CertificateContext, TlsMaterial } from "../tls/common-tls-context.ts";
import type { ValidationContext } from "../tls/secret.ts";
import { certificateFailure, tlsErrorText } from "../tls/transport-failure.ts";
import { staleCertificate } from "../tls/stale-certificate.ts";
import { type PeerOutcome, verifyPeer } from "../tls/verify-peer.ts";
import { chooseCertificate } from "./choose-certificate.ts";

export interface TlsHandshakeOptions {
  /** Accepted; what a listener filter has looked at has been put back (`unshift`). */
  readonly socket: Socket;
  readonly info: ConnectionInfo;
  readonly transport: DownstreamTls;
  readonly dataPath: DataPath;
  /** `info.tls` is set. The socket gives its first byte in a later turn at the earliest. */
  readonly onEstablished: (socket: TLSSocket) => void;
  /** The socket is gone; `info.transportFailureReason` says why, undefined = the client went away. */
  readonly onFailed: () => void;
}

interface ServerHandle {
  verifyError(): (Error & { readonly code?: string }) | null | undefined;
}

/** How long a refused client may take to read that it has been. */
const graceAfterRefusalMs = 1000;

export class TlsHandshake implements DownstreamConnection {
  readonly #options: TlsHandshakeOptions;
  readonly #socket: TLSSocket | undefined;
  readonly #timer: CallbackTimer;
  #validation: ValidationContext | undefined = undefined;
  #isOver = false;
  /** The hello has been looked at before. */
  readonly #startedMs: number;

  constructor(options: TlsHandshakeOptions) {
    this.#options = options;
    const { transport, dataPath } = options;
    this.#startedMs = dataPath.turn.nowMs;
    this.#timer = new CallbackTimer(() => this.#onTimeout());
    const material = transport.context.material;
    if (material === undefined) {
      transport.stats.onSecretsNotReady();
      options.info.transportFailureReason = "TLS error: Secret is not supplied by SDS";
      options.socket.destroy();
      process.nextTick(() => this.#fail());
      return;
    }
    this.#validation = material.validation;
    const socket = new TLSSocket(options.socket, this.#socketOptions(material));
    this.#socket = socket;
    socket.on("secure", () => this.#onSecure(socket));
    socket.on("error", (error: NodeJS.ErrnoException) => this.#onError(error));
    // Half-open connections are for those who have begun to speak.
    socket.on("end", () => void (this.#isOver || this.destroy()));
    socket.on("close", () => this.#fail());
    if (transport.handshakeTimeoutMs > 0) {
      dataPath.timers.arm(this.#timer, transport.handshakeTimeoutMs, dataPath.turn.nowMs);
    }
  }

  /** A handshake says nothing that could be lost: what follows it is told. */
  drain(): void {}

  destroy(): void {
    this.#options.socket.destroy();
    this.#socket?.destroy();
  }

  #socketOptions(material: TlsMaterial): TLSSocketOptions {
    const { transport, info } = this.#options;
    const { alpnProtocols } = transport.context;
    // A client that offers nothing of ours goes on without a protocol (Envoy); Node would end the handshake.
    const offered = info.offeredProtocols;
    const agrees = offered === undefined || alpnProtocols.some((protocol) => offered.includes(protocol));
    const chosen = chooseCertificate(material.contexts, info.serverName);
    return {
      isServer: true,
      secureContext: chosen.secureContext,
      ...certificateRequest(transport, material.validation),
      ...(alpnProtocols.length > 0 && agrees && { ALPNProtocols: [...alpnProtocols] }),
      ...(needsNameOfHandshake(info, material.contexts) && {
        SNICallback: (name: string, done: (error: Error | null, context?: SecureContext) => void) => {
          done(null, chooseCertificate(material.contexts, name).secureContext);
        },
      }),
    };
  }

  #onSecure(socket: TLSSocket): void {
    if (this.#isOver) return;
    const { transport, info } = this.#options;
    const { stats } = transport;
    // A certificate that nothing is compared with proves nothing, and must not pass for one that does.
    const certificate = judges(this.#validation) ? socket.getPeerX509Certificate() : undefined;
    const handle = (socket as unknown as { _handle: ServerHandle })._handle;
    const chainError = certificate === undefined ? undefined : (handle.verifyError()?.code ?? undefined);
    const nowMs = this.#options.dataPath.clock.wallMs();
    const requiresCertificate = requiresClientCertificate(transport, this.#validation);
    const rules = { peerIs: "client", requiresCertificate, nowMs } as const;
    const peer = shownCertificateInfo(certificate);
    const stale = socket.isSessionReused() ? staleCertificate(peer, nowMs) : undefined;
    const outcome = verifyPeer({ certificate, chainError: chainError ?? stale }, rules, this.#validation);
    const group = keyExchangeGroup(socket);
    info.transportProtocol = "tls";
    // The logs tell of a refused client too.
    info.tls = {
      peer,
      local: shownCertificateInfo(socket.getX509Certificate()),
      peerIsValidated: outcome.ok && outcome.validated,
      version: socket.getProtocol() ?? "",
      cipher: socket.getCipher().name,
      applicationProtocol: socket.alpnProtocol === false ? "" : (socket.alpnProtocol ?? ""),
      establishedMs: this.#options.dataPath.turn.nowMs,
      startedMs: this.#startedMs,
      sessionId: () => sessionIdOf(socket),
      group: () => group,
    };
    if (!outcome.ok) {
      this.#refuse(socket, outcome);
      return;
    }
    stats.onHandshake(socket, certificate !== undefined, group);
    this.#end();
    this.#options.onEstablished(socket);
  }

  // Node has told the client already that the handshake is over: there is no alert to be sent any more. The end of our
  // side goes out first, so that a client that is still writing reads an end and no reset.
  #refuse(socket: TLSSocket, outcome: Extract<PeerOutcome, { ok: false }>): void {
    this.#options.transport.stats.onPeerFailure(outcome.kind);
    this.#options.info.transportFailureReason = certificateFailure(outcome.message).message;
    const { timers, turn } = this.#options.dataPath;
    socket.on("data", () => undefined);
    socket.end();
    timers.arm(this.#timer, graceAfterRefusalMs, turn.nowMs);
  }

  #onError(error: NodeJS.ErrnoException): void {
    const { info, transport } = this.#options;
    if (this.#isOver || info.transportFailureReason !== undefined) return;
    const reason = tlsErrorText(error);
    // What is no error of TLS is an end of the connection, which `close` tells.
    if (reason === undefined) return;
    info.transportFailureReason = reason;
    if (error.code === "ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE") transport.stats.onPeerFailure("no_certificate");
    else transport.stats.onConnectionError();
  }

  #onTimeout(): void {
    if (this.#options.info.transportFailureReason === undefined) {
      this.#options.info.terminationDetails = "transport_socket_timeout";
      this.#options.transport.handshakeTimeouts.increment();
    }
    this.destroy();
  }

  #fail(): void {
    if (this.#isOver) return;
    this.#end();
    this.#options.onFailed();
  }

  #end(): void {
    this.#isOver = true;
    const { timers } = this.#options.dataPath;
    timers.disarm(this.#timer);
  }
}

/** The inspector has not told the name, and there is a choice. */
function needsNameOfHandshake(info: ConnectionInfo, contexts: readonly CertificateContext[]): boolean {
  return info.serverName === "" && contexts.length > 1;
}

/** There is something to compare a certificate with, or whoever shows one is let in by intent. */
function judges(validation: ValidationContext | undefined): validation is ValidationContext {
  if (validation === undefined) return false;
  const { trustedCa, acceptsUntrusted, certificateHashes, spkiHashes, nameMatches } = validation;
  const rules = certificateHashes.size + spkiHashes.size + nameMatches.length;
  return trustedCa !== undefined || acceptsUntrusted || rules > 0;
}

/**
 * The handshake itself refuses a client without a certificate where one is needed, so that the client is told by an
 * alert.
 */
function certificateRequest(transport: DownstreamTls, validation: ValidationContext | undefined): TLSSocketOptions {
  if (!judges(validation)) return { requestCert: false, rejectUnauthorized: false };
  return { requestCert: true, rejectUnauthorized: requiresClientCertificate(transport, validation) };
}

/**
 * Asked of sessions that are taken up again too: the handshake asks them for nothing, and they may be of another chain.
 */
function requiresClientCertificate(transport: DownstreamTls, validation: ValidationContext | undefined): boolean {
  if (transport.requiresClientCertificate) return true;
  if (validation === undefined || validation.acceptsUntrusted) return false;
  return validation.nameMatches.length + validation.certificateHashes.size + validation.spkiHashes.size > 0;
}
