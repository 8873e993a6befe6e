// The API's TCP port: the first byte of a connection tells TLS from HTTP in the clear. Whoever has not shown the token
// yet is one of a few, for a short time, and makes way for newcomers: another user's idle connections keep nobody out.
import { constants } from "node:crypto";
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { descriptorLimit, descriptorOf, type DescriptorReserve, GuardedListener, remoteOf } from "@tulle/listening";
import { minTlsVersion, type ServerTlsCredentials } from "@tulle/xds";
import { handedApiServer } from "./api-server.ts";

export interface TcpDoorOptions {
  readonly address: { readonly host: string; readonly port: number };
  /** The control plane's own certificate; undefined in a mesh without an authority: then there is no TLS here. */
  readonly credentials: ServerTlsCredentials | undefined;
  readonly onPlain: RequestListener;
  /**
   * `admit` is called when the request has shown the token: its connection may stay. False where too many stay already.
   */
  readonly onTls: (request: IncomingMessage, response: ServerResponse, admit: () => boolean) => void;
  /** Kept for the Unix socket, for files, and for the proxies. */
  readonly descriptors: DescriptorReserve;
}

export const tcpLimits = {
  /**
   * Connections that have shown no token; of small limits on descriptors an eighth. The oldest makes way for one more.
   */
  maxUnproven: 256,
  /** From the connection's begin to the end of its answer, or to a request with the token. */
  unprovenLifeMs: 10_000,
  /** Connections that have shown the token. */
  maxProven: 1024,
} as const;

/** RFC 8446 §5.1: the first byte of a record with a handshake message, and of no HTTP method. */
const tlsHandshakeByte = 0x16;

export class TcpDoor {
  /** Its newcomers have shown no token. */
  readonly #listening: GuardedListener;
  readonly #plain: Server;
  readonly #requests: Server;
  /** Ends TLS, and hands over what is in it. */
  readonly #tls: TlsServer | undefined;
  readonly #proven = new Set<string>();

  constructor(options: TcpDoorOptions) {
    const { credentials } = options;
    this.#plain = handedApiServer(options.onPlain);
    this.#requests = handedApiServer((request, response) => {
      options.onTls(request, response, () => this.#admit(request));
    });
    this.#tls = credentials && createTlsServer({ ...tlsOptions(credentials), ALPNProtocols: ["http/1.1"] });
    this.#tls?.on("tlsClientError", (_error, socket) => socket.destroy());
    this.#tls?.on("secureConnection", (socket) => {
      socket.on("error", () => socket.destroy());
      this.#requests.emit("connection", socket);
    });
    const { descriptors } = options;
    this.#listening = new GuardedListener({
      maxNewcomers: Math.min(tcpLimits.maxUnproven, Math.ceil(descriptorLimit() / 8)),
      newcomerLifeMs: tcpLimits.unprovenLifeMs,
      refuses: (socket) => descriptors.refuses(descriptorOf(socket), performance.now()),
      accept: (socket) => this.#take(socket),
    });
  }

  /** Rejects if the address cannot be bound. */
  listen({ host, port }: TcpDoorOptions["address"]): Promise<number> {
    return this.#listening.listen(host, port);
  }

  /** For connections from now on. */
  setCredentials(credentials: ServerTlsCredentials): void {
    this.#tls?.setSecureContext(tlsOptions(credentials));
  }

  async close(): Promise<void> {
    await this.#listening.close();
    // They listen nowhere; what ends is the look at their connections' times.
    for (const server of [this.#plain, this.#requests]) server.close();
  }

  #admit({ socket }: IncomingMessage): boolean {
    const remote = remoteOf(socket);
    if (this.#proven.has(remote)) return true;
    if (this.#proven.size >= tcpLimits.maxProven) return false;
    this.#listening.admit(remote);
    this.#proven.add(remote);
    return true;
  }

  #take(socket: Socket): void {
    const remote = remoteOf(socket);
    socket.on("close", () => this.#proven.delete(remote));
    // Not by "data": who takes the socket over finds all that came.
    socket.once("readable", () => {
      const first = socket.read(1) as Buffer | null;
      if (first === null) {
        socket.destroy();
        return;
      }
      socket.unshift(first);
      if (first[0] !== tlsHandshakeByte) this.#plain.emit("connection", socket);
      else if (this.#tls === undefined) socket.destroy();
      else this.#tls.emit("connection", socket);
    });
  }
}

function tlsOptions({ privateKeyPem, certChainPem }: ServerTlsCredentials) {
  return {
    key: privateKeyPem,
    cert: certChainPem,
    minVersion: minTlsVersion,
    secureOptions: constants.SSL_OP_NO_TICKET,
  } as const;
}
