// What a control plane and the ADS server say to each other. The control plane declares, connection by connection and
// type by type, which resources a proxy should have; the server works out what to send, when, and in which responses.
import type { Socket } from "node:net";
import type { Clock } from "@tulle/timing";
import type { Node } from "./generated/envoy/config/core/v3/base_pb.ts";
import type { EncodedResource } from "./encoded-resource.ts";
import type { ResourceTypeName } from "./resource-types.ts";
import type { PeerIdentity, ServerTls, ServerTlsCredentials } from "./transport-security.ts";
import type { GrpcStatusName, UnaryHandlers } from "./unary-calls.ts";
import type { XdsService } from "./methods.ts";

/** `*` is the wildcard subscription: all listeners, or all clusters. */
export type SubscribedNames = ReadonlySet<string> | "*";

/** A resource that the proxy refused; kept until a different version of it is declared. */
export interface RejectedResource {
  readonly name: string;
  /** The version that was refused; the proxy is served the one that it accepted last, or none. */
  readonly version: string;
  /** The proxy's own words. */
  readonly message: string;
  readonly atMs: number;
}

/**
 * - `NOT SENT`: no response of this type was sent on this stream.
 * - `SYNCED`: the proxy has acknowledged everything declared that it subscribes to.
 * - `STALE`: something was sent, or waits to be sent, and is not acknowledged.
 * - `ERROR`: the proxy refused a version that is still the declared one. It wins over the others.
 * - `IGNORED`: was sent once, and the proxy has given up its subscription since.
 */
export type SyncState = "NOT SENT" | "SYNCED" | "STALE" | "ERROR" | "IGNORED";

export interface TypeStatus {
  readonly type: ResourceTypeName;
  readonly state: SyncState;
  /** Undefined where the proxy never subscribed. */
  readonly subscribed: SubscribedNames | undefined;
  /** `version_info` and nonce of the newest response, and of the newest acknowledged one; empty before the first. */
  readonly sentVersion: string;
  readonly sentNonce: string;
  readonly ackedVersion: string;
  readonly ackedNonce: string;
  /** Milliseconds of the server's clock; 0 before the first. */
  readonly sentAtMs: number;
  readonly ackedAtMs: number;
  readonly rejected: readonly RejectedResource[];
}

/** One proxy's stream. Valid from `onConnect` to `onDisconnect`; calls after that do nothing. */
export interface AdsConnection {
  /** Unique in this process, in the order of arrival. */
  readonly id: number;
  /** The peer's address as gRPC gives it: `127.0.0.1:4711` or `unix:…`. */
  readonly peer: string;
  /** As its certificate proves; undefined when it showed none or the server speaks no TLS. */
  readonly peerIdentity: PeerIdentity | undefined;
  readonly node: Node;
  readonly connectedAtMs: number;
  /**
   * Declares all resources of `type` that the proxy should have, subscribed or not (the server picks what it subscribes
   * to). Calls of one event-loop turn form one push: they are sent together, in make-before-break order. `existing` is
   * how many of them there are whatever the proxy asks for; it bounds what it may ask for.
   */
  set(type: ResourceTypeName, resources: ReadonlyMap<string, EncodedResource>, existing?: number): void;
  /** What was declared counts at once, though it is sent at the end of the turn. */
  status(): ReadonlyMap<ResourceTypeName, TypeStatus>;
  /** Ends the stream with a status and words for the client, which may come back. */
  close(status: GrpcStatusName, reason: string): void;
}

/** Why a client is not served: what it is told, and what `onTurnedAway` hears. */
export interface Refusal {
  readonly status: GrpcStatusName;
  readonly details: string;
}

/** Who opens a stream, before it has said anything. */
export interface StreamOpening {
  /** The peer's address as gRPC gives it. */
  readonly peer: string;
  /** As its certificate proves; undefined when it showed none or the server speaks no TLS. */
  readonly peerIdentity: PeerIdentity | undefined;
  /** Streams that stand already, of the same identity; of the same connection without one. */
  readonly openStreams: number;
}

export interface Subscription {
  readonly type: ResourceTypeName;
  readonly names: SubscribedNames;
}

export interface Acknowledgement {
  readonly type: ResourceTypeName;
  readonly nonce: string;
  readonly versionInfo: string;
  /** The resources of the responses that it acknowledges. */
  readonly names: readonly string[];
}

export interface Rejection {
  readonly type: ResourceTypeName;
  readonly nonce: string;
  /** The proxy's own words, as it put them into `error_detail.message`. */
  readonly message: string;
  /** What the response held. */
  readonly offered: readonly string[];
  /** Those that the message names; those that were new, where it names none. */
  readonly offenders: readonly RejectedResource[];
}

/** A type that is not spoken, or an answer to a response that was answered before. */
export type IgnoredRequest =
  | { readonly reason: "unknown type"; readonly typeUrl: string }
  | { readonly reason: "stale nonce"; readonly type: ResourceTypeName; readonly nonce: string };

/**
 * Implemented by the control plane. A handler that throws ends that stream with INTERNAL; its stack is the
 * disconnection's reason.
 */
export interface AdsServerHandlers {
  /** The first request has arrived, so that the node is known. */
  onConnect(connection: AdsConnection): void;
  /** The first subscription to a type, or one whose names have changed. Answer by `connection.set`, now or later. */
  onSubscribe(connection: AdsConnection, subscription: Subscription): void;
  onAck?(connection: AdsConnection, acknowledgement: Acknowledgement): void;
  onNack?(connection: AdsConnection, rejection: Rejection): void;
  onSent?(
    connection: AdsConnection,
    sent: {
      readonly type: ResourceTypeName;
      readonly nonce: string;
      readonly resources: number;
      readonly bytes: number;
      /** To encode it and to hand it to the transport. */
      readonly tookMs: number;
    },
  ): void;
  /** A request without effect. */
  onIgnored?(connection: AdsConnection, ignored: IgnoredRequest): void;
  /** A handler has thrown, which ends the stream: the control plane's own fault. */
  onInternalError?(connection: AdsConnection): void;
  onDisconnect(connection: AdsConnection, reason: string): void;
}

/**
 * Where a server listens: a TCP address (port 0 takes a free one), by a socket that listens there already if there is a
 * `descriptor`, or the path of a Unix socket. Without TLS a descriptor is not looked at.
 */
export type AdsAddress =
  | { readonly host: string; readonly port: number; readonly descriptor?: number | undefined }
  | { readonly path: string };

export interface AdsServerLimits {
  /** Streams over all connections; one more gets RESOURCE_EXHAUSTED. */
  readonly maxStreams: number;
  /**
   * Of TCP: connections whose handshake is not done, without TLS those that have called nothing yet; the oldest is
   * closed for one more.
   */
  readonly maxHandshakes: number;
  /** With TLS: connections of clients that have shown no certificate; the oldest is closed for one more. */
  readonly maxUnproven: number;
  /** From a stream's begin to its first request; then DEADLINE_EXCEEDED. */
  readonly firstRequestTimeoutMs: number;
  /** Of the node that the first request brings, encoded: it is kept as long as the stream stands. */
  readonly maxNodeBytes: number;
  /** Of one name that is asked for. */
  readonly maxNameCharacters: number;
  /** Names that a request may have beyond twice as many as there are: a proxy may still ask for what has just gone. */
  readonly maxSpareNames: number;
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
  /** Unacknowledged responses of a type with one resource a response. The other types have one. */
  readonly maxOutstandingResponses: number;
  /** After this long without an answer a newer push is sent all the same, if the stream takes it. */
  readonly ackTimeoutMs: number;
  /** How long listeners and routes wait for the clusters and endpoints of the same push to be acknowledged. */
  readonly dependencyTimeoutMs: number;
  /** How long a removed cluster is kept for routes that still name it. */
  readonly removalTimeoutMs: number;
  /** HTTP/2 pings: a peer that is merely stopped must outlast them, so that it can be shown as STALE. */
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
}

export interface AdsServerOptions {
  readonly address: AdsAddress;
  readonly handlers: AdsServerHandlers;
  readonly limits?: Partial<AdsServerLimits>;
  /** For tests; the system's clock otherwise. */
  readonly clock?: Clock;
  /** Put into each response's `control_plane.identifier`. */
  readonly controlPlaneId?: string;
  /** The gRPC service whose streams `handlers` take; `ads` unless told. */
  readonly service?: XdsService;
  /** Take streams of the SDS service beside those of ADS. */
  readonly secretHandlers?: AdsServerHandlers;
  /**
   * Asked once the node is known: why this client may not have what it asks for, undefined when it may. The words go to
   * the client, the stream ends with PERMISSION_DENIED, and no handler hears of it.
   */
  readonly refusal?: (connection: Pick<AdsConnection, "peer" | "peerIdentity" | "node">) => string | undefined;
  /** Asked when a stream opens, before it has brought a byte. */
  readonly admission?: (opening: StreamOpening) => Refusal | undefined;
  /** Hears of each client that was turned away by a limit or by `admission`. */
  readonly onTurnedAway?: (peer: string, refusal: Refusal) => void;
  /** On a TCP address only. */
  readonly tls?: ServerTls;
  /** Of TCP: whether a connection that was just accepted is closed, before anything is read. */
  readonly refusesConnection?: (socket: Socket) => boolean;
  /** Answered on the same port. */
  readonly unaryHandlers?: UnaryHandlers;
}

export interface RunningAdsServer {
  /** The address that was bound, with the port taken. */
  readonly address: AdsAddress;
  /** The streams whose node is known, of all services. */
  readonly connections: readonly AdsConnection[];
  /**
   * Replaces what is shown to new connections; streams that stand go on. Only for a server with TLS.
   * @throws if key and certificate do not fit
   */
  setCredentials(credentials: ServerTlsCredentials): void;
  /** Ends all streams and closes the socket. */
  close(): Promise<void>;
}
