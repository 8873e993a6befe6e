// The TLS side of a gRPC server. gRPC's own shows a call neither the client's chain nor a certificate that OpenSSL did
// not like, so connections are accepted and judged here, and those that are good are handed over.
import type { X509Certificate } from "node:crypto";
import { constants } from "node:crypto";
import type { Socket } from "node:net";
import { type SecureContextOptions, type Server, type TLSSocket, createServer } from "node:tls";
import { GuardedListener, remoteOf } from "@tulle/listening";
import {
  type PeerIdentity,
  type RefusedClient,
  type ServerTls,
  type ServerTlsCredentials,
  minTlsVersion,
} from "./transport-security.ts";

export interface TlsPeer {
  /** DER, the leaf first; empty when the client showed none. */
  readonly certificates: readonly Uint8Array[];
  readonly identity: PeerIdentity | undefined;
}

const noPeer: TlsPeer = { certificates: [], identity: undefined };
const handshakeTimeoutMs = 10_000;
/** From the handshake to the first call of a client that has shown a certificate. */
const firstCallTimeoutMs = 10_000;
/** How long a client without a certificate may stay: it asks for one, and comes again with it. */
const unprovenConnectionMs = 30_000;
/** Longer times than 24 days are none to a timer, and a machine that sleeps holds timers up. */
const lookEveryMs = 60_000;
/** A peer may send longer chains; what is beyond is not looked at, and the path to a root is then incomplete. */
const maxChainCertificates = 10;

export interface TlsListenerOptions {
  readonly maxConnections: number;
  /** Connections whose handshake is not done. The oldest makes room: who says nothing keeps nobody out. */
  readonly maxHandshakes: number;
  /**
   * Clients without a certificate at once. The oldest makes room, so that whoever holds the places keeps nobody out.
   */
  readonly maxUnproven: number;
  /** Whether a connection that was just accepted is closed. */
  readonly refuses: (socket: Socket) => boolean;
  readonly accept: (socket: TLSSocket) => void;
}

export class TlsListener {
  /**
   * Its newcomers are those before the end of their handshake; the TLS server ends those that take too long, and says
   * so.
   */
  readonly #listening: GuardedListener;
  /** Listens nowhere: what is accepted is handed to it. */
  readonly #server: Server;
  readonly #tls: ServerTls;
  readonly #options: TlsListenerOptions;
  /** By remote address and port: all that a gRPC call tells of its connection. */
  readonly #peers = new Map<string, TlsPeer>();
  /** Without a certificate, the oldest first. */
  readonly #unproven = new Set<TLSSocket>();
  /** Of clients that have not called yet, by remote address and port. */
  readonly #waiting = new Map<string, NodeJS.Timeout>();

  constructor(tls: ServerTls, options: TlsListenerOptions) {
    this.#tls = tls;
    this.#options = options;
    this.#server = createServer({
      ...contextOptions(tls.credentials),
      ALPNProtocols: ["h2"],
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: handshakeTimeoutMs,
    });
    this.#listening = new GuardedListener({
      maxConnections: options.maxConnections,
      maxNewcomers: options.maxHandshakes,
      refuses: options.refuses,
      accept: (socket) => void this.#server.emit("connection", socket),
    });
    this.#server.on("tlsClientError", (error: Error, socket: TLSSocket) =>
      this.#refuse(socket, { reason: "handshake", message: error.message }),
    );
    this.#server.on("secureConnection", (socket: TLSSocket) => this.#secured(socket));
  }

  /** Rejects if the address cannot be bound. */
  listen(host: string, port: number, descriptor?: number): Promise<number> {
    return this.#listening.listen(host, port, descriptor);
  }

  /** Of the connection of a call. */
  peer(remote: string): TlsPeer {
    clearTimeout(this.#waiting.get(remote));
    this.#waiting.delete(remote);
    return this.#peers.get(remote) ?? noPeer;
  }

  /** For connections from now on; those that stand are left alone. @throws if key and certificate do not fit */
  setCredentials(credentials: ServerTlsCredentials): void {
    this.#server.setSecureContext(contextOptions(credentials));
  }

  close(): Promise<void> {
    return this.#listening.close();
  }

  #secured(socket: TLSSocket): void {
    this.#listening.admit(remoteOf(socket));
    // Its errors end the calls on it; unheard they would end the process.
    socket.on("error", () => undefined);
    if (socket.alpnProtocol !== "h2") {
      this.#refuse(socket, { reason: "no-http2", message: "the client did not offer HTTP/2 by ALPN" });
      return;
    }
    const certificates = chainOf(socket);
    let identity: PeerIdentity | undefined;
    if (certificates.length > 0) {
      const verdict = this.#tls.verifyClient(certificates);
      if (!verdict.ok) {
        this.#refuse(socket, verdict);
        return;
      }
      ({ identity } = verdict);
      endAt(socket, verdict.validUntilMs);
    }
    const remote = remoteOf(socket);
    const peer: TlsPeer = { certificates, identity };
    this.#peers.set(remote, peer);
    const timer = this.#limitStay(socket, remote, identity !== undefined);
    socket.on("close", () => {
      clearTimeout(timer);
      this.#unproven.delete(socket);
      // The client's port may have a new connection already.
      if (this.#waiting.get(remote) === timer) this.#waiting.delete(remote);
      if (this.#peers.get(remote) === peer) this.#peers.delete(remote);
    });
    this.#options.accept(socket);
  }

  /** The timer that ends the connection; a call of a client with a certificate stops it. */
  #limitStay(socket: TLSSocket, remote: string, isProven: boolean): NodeJS.Timeout {
    if (isProven) {
      const message = `no call in ${firstCallTimeoutMs} ms`;
      const timer = setTimeout(() => this.#refuse(socket, { reason: "no-call", message }), firstCallTimeoutMs);
      this.#waiting.set(remote, timer);
      return timer;
    }
    this.#unproven.add(socket);
    const [oldest] = this.#unproven;
    const { maxUnproven } = this.#options;
    if (this.#unproven.size > maxUnproven && oldest !== undefined) {
      this.#unproven.delete(oldest);
      const message = `more than ${maxUnproven} clients without a certificate`;
      this.#refuse(oldest, { reason: "too-many-unproven", message });
    }
    // Nothing is wrong with a client that stays after it has its certificate: its connection ends without a word.
    return setTimeout(() => socket.destroy(), unprovenConnectionMs);
  }

  #refuse(socket: TLSSocket, { reason, message }: Omit<RefusedClient, "peer">): void {
    const peer = remoteOf(socket);
    socket.destroy();
    this.#tls.onRefused?.({ peer, reason, message });
  }
}

/**
 * A connection lives no longer than the certificate that opened it, or a workload that is not given a new one would
 * keep what it has. The whole connection ends, because a client such as Envoy would open its next stream on the same
 * one.
 */
function endAt(socket: TLSSocket, untilMs: number): void {
  let timer: NodeJS.Timeout;
  const look = (): void => {
    const leftMs = untilMs - Date.now();
    if (leftMs <= 0) socket.destroy();
    else timer = setTimeout(look, Math.min(leftMs, lookEveryMs)).unref();
  };
  look();
  socket.on("close", () => clearTimeout(timer));
}

function contextOptions({ privateKeyPem, certChainPem, clientRootsPem }: ServerTlsCredentials): SecureContextOptions {
  return {
    key: privateKeyPem,
    cert: certChainPem,
    ca: clientRootsPem,
    minVersion: minTlsVersion,
    // A resumed session brings the leaf alone, without the authorities between it and the root (RFC 8446 §2.2): it
    // could not be judged again, and streams that live for days gain nothing from it.
    secureOptions: constants.SSL_OP_NO_TICKET,
  };
}

function chainOf(socket: TLSSocket): readonly Uint8Array[] {
  const chain: Uint8Array[] = [];
  let certificate: X509Certificate | undefined = socket.getPeerX509Certificate();
  while (certificate !== undefined && chain.length < maxChainCertificates) {
    chain.push(certificate.raw);
    certificate = certificate.issuerCertificate;
  }
  return chain;
}
