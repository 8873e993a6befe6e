// What is known about one downstream connection: made when it is accepted and shared by all streams on it
// (Envoy: `ConnectionInfoProvider` and the connection's own `StreamInfo`).
import type { Socket } from "node:net";
import type { SocketEnd } from "@tulle/capture";
import type { Destination } from "../http/destination.ts";
import { unmappedIp } from "../http/canonical-ip.ts";
import { ipPortText } from "../http/ip-port-text.ts";
import type { ListenerFacts } from "../http/stream-info.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { Protocol } from "../http/message.ts";
import type { UpstreamSource } from "../http/upstream-source.ts";
import type { TlsInfo } from "../tls/tls-info.ts";
import type { CloseType } from "../worker/close-type.ts";
import { RoundTrip } from "./round-trip.ts";
import { nextConnectionId } from "../worker/connection-id.ts";

/** Hears who speaks first on a connection that was passed on before its client had said anything. */
export interface FirstWord {
  ofClient(): void;
  ofServer(chunk: Buffer): void;
}

export class ConnectionInfo {
  readonly id = nextConnectionId();
  /**
   * Where the client meant to go: the socket's own address, or what `restoreDestination` has put in its place. Without
   * the `::ffff:` of a mapped IPv4 address, as for the remote one.
   */
  localIp: string;
  localPort: number;
  /** The peer of the TCP connection, or whoever a proxy says it speaks for (`restoreProxied`). */
  remoteIp: string;
  remotePort: number;
  /** `ip:port` */
  localAddress: string;
  /** The socket's own, whatever was restored (Envoy: `directLocalAddress`). */
  readonly directLocalAddress: string;
  remoteAddress: string;
  /** The peer of the TCP connection, whatever a proxy has said (Envoy: `directRemoteAddress`). */
  readonly directRemoteIp: string;
  readonly directRemoteAddress: string;
  /** The local address is the one that the connection had before it was redirected here. */
  isDestinationRestored = false;
  /** Server name that the client asked for, lower case, empty = none (Envoy: `requestedServerName`). */
  serverName = "";
  /** ALPN protocols that the client offers, or what the HTTP inspector found. */
  applicationProtocols: readonly string[] = [];
  /** ALPN of the hello, whether chains may ask for it or not; undefined = nobody has looked. */
  offeredProtocols: readonly string[] | undefined = undefined;
  /** Of the hello, where the TLS inspector is asked for them; empty = it is not, or there was no hello. */
  ja3Fingerprint = "";
  ja4Fingerprint = "";
  transportProtocol: "raw_buffer" | "tls" = "raw_buffer";
  /** Known once the connection has ended; undefined = it carried something else, or nothing. */
  protocol: Protocol | undefined = undefined;
  /** Undefined = the connection is plain. */
  tls: TlsInfo | undefined = undefined;
  /** Undefined = hosts are called from an address of this machine. */
  upstreamSource: UpstreamSource | undefined = undefined;
  /** Known once a filter chain has been looked for. */
  listener: ListenerFacts | undefined = undefined;
  /** Until somebody speaks; undefined = nobody asks. */
  firstWord: FirstWord | undefined = undefined;
  /** What network filters leave for those behind them, by key, such as `envoy.tcp_proxy.cluster`. */
  readonly filterState = new Map<string, unknown>();
  /** What network filters left for logs, by filter name. */
  dynamicMetadata: Record<string, Readonly<Record<string, unknown>>> | undefined = undefined;
  /** `%CONNECTION_TERMINATION_DETAILS%` */
  terminationDetails: string | undefined = undefined;
  /** Bits of `responseFlags`, of the connection as a whole. */
  responseFlags = 0;
  /** Of the listener's log: why no chain has taken the connection. */
  responseCodeDetails: string | undefined = undefined;
  /** Payload, known once the connection has ended. */
  bytesReceived = 0;
  bytesSent = 0;
  closeType: CloseType = "Normal";
  /** What a TCP proxy has told of it, which the listener's log tells, too; known once it has ended. */
  session: StreamInfo | undefined = undefined;
  /** `%DOWNSTREAM_TRANSPORT_FAILURE_REASON%` */
  transportFailureReason: string | undefined = undefined;

  readonly roundTrip: RoundTrip;

  constructor(socket: Socket) {
    this.roundTrip = new RoundTrip(socket);
    this.localIp = unmappedIp(socket.localAddress ?? "");
    this.localPort = socket.localPort ?? 0;
    this.remoteIp = unmappedIp(socket.remoteAddress ?? "");
    this.remotePort = socket.remotePort ?? 0;
    this.localAddress = ipPortText(this.localIp, this.localPort);
    this.directLocalAddress = this.localAddress;
    this.remoteAddress = ipPortText(this.remoteIp, this.remotePort);
    this.directRemoteIp = this.remoteIp;
    this.directRemoteAddress = this.remoteAddress;
  }

  /** The connection was redirected here on its way to that address (Envoy: `restoreLocalAddress`). */
  restoreDestination(ip: string, port: number): void {
    this.localIp = ip;
    this.localPort = port;
    this.localAddress = ipPortText(ip, port);
    this.isDestinationRestored = true;
  }

  originalDestination(): Destination | undefined {
    if (!this.isDestinationRestored) return undefined;
    return { ip: this.localIp, port: this.localPort, text: this.localAddress };
  }

  /** A proxy says whose connection it is, and where it was aimed (PROXY protocol). */
  restoreProxied(source: SocketEnd, destination: SocketEnd): void {
    this.remoteIp = source.ip;
    this.remotePort = source.port;
    this.remoteAddress = ipPortText(source.ip, source.port);
    if (destination.ip !== this.localIp || destination.port !== this.localPort)
      this.restoreDestination(destination.ip, destination.port);
  }
}
