// What is known about one request while it lives: filled by the data path, read by access log, metrics and filters.
// One class, all fields set in the constructor, so that every request has the same shape (Envoy: `StreamInfo`).
import type { Destination } from "./destination.ts";
import type { Cluster, Host } from "../cluster/cluster.ts";
import type { PeerCertificate } from "../tls/tls-info.ts";
import type { TlsInfo, UpstreamTlsInfo } from "../tls/tls-info.ts";
import type { Route } from "../route/route-table.ts";
import type { ActiveSpan, TraceReason } from "../tracing/active-span.ts";
import type { UpstreamConnection } from "../upstream/pooled-connection.ts";
import type { AccessLogType } from "./access-log-type.ts";
import type { GrpcMessages } from "./grpc-messages.ts";
import type { HeaderMap } from "./header-map.ts";
import type { Protocol, RequestHead, ResponseHead } from "./message.ts";
import type { CloseType } from "../worker/close-type.ts";
import type { UpstreamSource } from "./upstream-source.ts";
import { noStreamBytes, type StreamBytes, sumOfBytes } from "./stream-bytes.ts";

/** Of a connection: what took it. */
export interface ListenerFacts {
  readonly connectionId: number;
  readonly name: string;
  /** By filter name, as JSON. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly chainName: string;
  /** `ip:port` of the socket itself, where a connection's original destination is known as its local address. */
  readonly directLocalAddress: string;
  /** Where the client meant to go, if the kernel has redirected its connection here. */
  readonly originalDestination: Destination | undefined;
  /** Undefined = hosts are called from an address of this machine. */
  readonly upstreamSource: UpstreamSource | undefined;
  /** `ip:port` of the peer itself, where a proxy says for whom it speaks. */
  readonly directRemoteAddress: string;
  readonly chainMetadata: Readonly<Record<string, unknown>>;
  /** Of the client's hello of TLS; empty = nobody asks for them. */
  readonly ja3Fingerprint: string;
  readonly ja4Fingerprint: string;
  /** In whole milliseconds, as the kernel knows it; undefined = it does not tell. Asks the kernel. */
  roundTripMs(): number | undefined;
}

export class StreamInfo {
  /** Wall clock with fractions, at the very time that `startMonotonicMs` is. */
  readonly startTimeMs: number;
  /** Monotonic clock (performance.now), for durations. */
  readonly startMonotonicMs: number;
  readonly downstreamLocalAddress: string;
  /** The peer, or the client that a trusted X-Forwarded-For names. */
  downstreamRemoteAddress: string;
  /** The peer of the connection, whatever headers say. */
  readonly connectionRemoteAddress: string;
  /** Server name of the TLS handshake, empty without. */
  readonly requestedServerName: string;

  /** Set by a TLS connection; undefined = the connection is plain. */
  downstreamPeerCertificate: PeerCertificate | undefined = undefined;
  downstreamTls: TlsInfo | undefined = undefined;
  /** Why a TLS handshake with the client failed. */
  downstreamTransportFailureReason: string | undefined = undefined;

  /** No request but a connection: one whose bytes a TCP proxy passes on, or one of a listener's log. */
  isConnection = false;
  /** The same where no TCP proxy has passed it on: no id is made up for it. */
  isWithoutId = false;
  /** A request to go on with another protocol, or as a tunnel, which its route allows. */
  isUpgrade = false;
  /** Where there is no request: what the connection speaks, undefined = nobody here has looked. */
  connectionProtocol: Protocol | undefined = undefined;
  /** Envoy: `%ACCESS_LOG_TYPE%`. */
  accessLogType: AccessLogType = "DownstreamEnd";

  /** Where the client's connection came in. */
  listener: ListenerFacts | undefined = undefined;

  request: RequestHead | undefined = undefined;
  /** The head that went to the client, once it did. */
  response: ResponseHead | undefined = undefined;
  /** What came behind the response's body, as filters left it. */
  responseTrailers: HeaderMap | undefined = undefined;
  route: Route | undefined = undefined;
  /** How often a route was looked for. */
  routeResolutions = 0;
  /** How long that took in all, where a format asks for it. */
  routeResolutionMs = 0;
  /** Metadata of the virtual host that has no route for the request. */
  routelessHost: Route["metadata"] | undefined = undefined;
  cluster: Cluster | undefined = undefined;
  /** Host of the last try. */
  upstreamHost: Host | undefined = undefined;
  upstreamLocalAddress: string | undefined = undefined;
  /** Of the last try's connection; undefined = it is plain, or there is none yet. */
  upstreamTls: UpstreamTlsInfo | undefined = undefined;
  /** Of the last try's connection; 0 = there is none yet. */
  upstreamConnectionId = 0;
  /** Of all that tries have had, where there were several. */
  triedConnectionIds: number[] | undefined = undefined;
  upstreamProtocol: Protocol | undefined = undefined;
  /** Hosts of all tries, where there were several. */
  triedHosts: Host[] | undefined = undefined;
  upstreamTransportFailureReason: string | undefined = undefined;

  /** What filters left for logs and later filters, by filter name; undefined until one does (`%DYNAMIC_METADATA%`). */
  dynamicMetadata: Record<string, Readonly<Record<string, unknown>>> | undefined = undefined;

  /**
   * `x-envoy-peer-metadata` as the client sent it, kept by the metrics filter; undefined = none was sent or asked for.
   */
  downstreamPeerMetadata: string | undefined = undefined;

  /** Where the connection manager traces. */
  span: ActiveSpan | undefined = undefined;
  traceReason: TraceReason = "not_traceable";

  /** Messages of a gRPC call, where a filter counts them and one has come. */
  grpcMessages: GrpcMessages | undefined = undefined;
  /** The client speaks gRPC-Web, which a filter has turned into gRPC. */
  isGrpcWeb = false;

  /** 0 while no response has been sent. */
  responseCode = 0;
  /** Bits of `responseFlags`. */
  responseFlags = 0;
  /** Envoy's `%RESPONSE_CODE_DETAILS%`, such as `via_upstream` or `route_not_found`. */
  responseCodeDetails: string | undefined = undefined;
  connectionTerminationDetails: string | undefined = undefined;
  /** How the connections ended: a request's end comes before that of its connections, so that only connections know. */
  downstreamCloseType: CloseType = "Normal";
  upstreamCloseType: CloseType = "Normal";
  /** While the body of a local reply is being put into a format. */
  localReplyBody: string | undefined = undefined;

  /** Body bytes from the client and to the client. */
  bytesReceived = 0;
  bytesSent = 0;
  /** Of a request, on the wire; to be read while it lasts, or as its end is told of. */
  downstreamBytes: StreamBytes = noStreamBytes;
  /** Of tries that are over, and of the one that is not. */
  endedTriesBytes: StreamBytes = noStreamBytes;
  currentTryBytes: StreamBytes = noStreamBytes;
  attemptCount = 0;
  /** From start to the end of the stream; set just before the completion hooks run. */
  durationMs = 0;
  /**
   * Points in time of the monotonic clock; -1 = not reached. The client's request is complete, its answer begins, and
   * has left as a whole; of the last try: the connection was asked for and came up, the request began to leave, and the
   * answer's head, its body and its end came.
   */
  requestEndedMs = -1;
  responseStartedMs = -1;
  responseEndedMs = -1;
  upstreamAskedMs = -1;
  upstreamPoolReadyMs = -1;
  upstreamConnectStartedMs = -1;
  upstreamConnectedMs = -1;
  upstreamRequestStartedMs = -1;
  upstreamResponseStartedMs = -1;
  upstreamBodyStartedMs = -1;
  upstreamResponseEndedMs = -1;
  /** From the last byte of the request to the first of the upstream's response; -1 while unknown. */
  upstreamServiceTimeMs = -1;

  constructor(
    startTimeMs: number,
    startMonotonicMs: number,
    downstreamLocalAddress: string,
    downstreamRemoteAddress: string,
    requestedServerName: string,
  ) {
    this.startTimeMs = startTimeMs;
    this.startMonotonicMs = startMonotonicMs;
    this.downstreamLocalAddress = downstreamLocalAddress;
    this.downstreamRemoteAddress = downstreamRemoteAddress;
    this.connectionRemoteAddress = downstreamRemoteAddress;
    this.requestedServerName = requestedServerName;
  }

  get downstreamDirectLocalAddress(): string {
    return this.listener?.directLocalAddress ?? this.downstreamLocalAddress;
  }

  get downstreamDirectRemoteAddress(): string {
    return this.listener?.directRemoteAddress ?? this.connectionRemoteAddress;
  }

  /** What is logged of a connection is of the last try's. */
  triesUpstream(host: Host, nowMs: number): void {
    this.upstreamAskedMs = nowMs;
    this.upstreamPoolReadyMs = -1;
    if (this.upstreamHost !== undefined) {
      (this.triedHosts ??= [this.upstreamHost]).push(host);
      this.upstreamConnectStartedMs = this.upstreamConnectedMs = this.upstreamRequestStartedMs = -1;
      this.upstreamResponseStartedMs = this.upstreamBodyStartedMs = this.upstreamResponseEndedMs = -1;
    }
    this.upstreamHost = host;
    this.upstreamLocalAddress = undefined;
    this.upstreamTls = undefined;
    this.upstreamProtocol = undefined;
  }

  /** The connection of a try is there, and the request begins to leave. */
  connectedUpstream(connection: UpstreamConnection, bytes: StreamBytes, nowMs: number): void {
    if (this.currentTryBytes !== noStreamBytes) this.keepTryBytes();
    this.currentTryBytes = bytes;
    if (this.upstreamConnectionId !== 0) (this.triedConnectionIds ??= [this.upstreamConnectionId]).push(connection.id);
    this.upstreamConnectionId = connection.id;
    this.upstreamLocalAddress = connection.localAddress;
    this.upstreamTls = connection.tls;
    this.upstreamProtocol = connection.protocol;
    this.upstreamConnectStartedMs = connection.connectStartedMs;
    this.upstreamConnectedMs = connection.connectedMs;
    this.upstreamRequestStartedMs = nowMs;
    this.upstreamPoolReadyMs = nowMs;
  }

  /** What the try at hand has taken on the wire, whose connection may serve another request now. */
  keepTryBytes(): void {
    this.endedTriesBytes = sumOfBytes(this.endedTriesBytes, this.currentTryBytes);
    this.currentTryBytes = noStreamBytes;
  }

  /** On the wire, of all tries together (as Envoy); to be read at once. */
  get upstreamBytes(): StreamBytes {
    const { endedTriesBytes: ended, currentTryBytes: current } = this;
    if (ended === noStreamBytes) return current;
    return current === noStreamBytes ? ended : sumOfBytes(ended, current);
  }

  heardUpstream(part: "head" | "body", endStream: boolean, nowMs: number): void {
    if (part === "head") this.upstreamResponseStartedMs = nowMs;
    else if (this.upstreamBodyStartedMs < this.upstreamResponseStartedMs) this.upstreamBodyStartedMs = nowMs;
    if (endStream) this.upstreamResponseEndedMs = nowMs;
  }
}
