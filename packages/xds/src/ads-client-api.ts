// What a proxy and the ADS client say to each other. The proxy subscribes, is handed one response at a time, and gives
// a verdict on it; the client turns verdicts into ACK and NACK and keeps the stream alive.
import type { BackOffLimits, Clock } from "@tulle/timing";
import type { Node } from "./generated/envoy/config/core/v3/base_pb.ts";
import type { SubscribedNames } from "./ads-server-api.ts";
import type { ByteStream, ByteStreamEvents } from "./byte-stream.ts";
import type { AdsTarget } from "./grpc-channel.ts";
import type { ResourceMessages, ResourceTypeName } from "./resource-types.ts";
import type { ClientTlsSource } from "./transport-security.ts";
import type { XdsService } from "./methods.ts";

export interface ResourceError {
  readonly name: string;
  readonly message: string;
}

/**
 * What the consumer gets of each type: the message, but of RDS its bytes. A route configuration may hold ten thousand
 * routes: decoded at once they were 24 MB of objects that lived for as long as it took to compile them, and garbage
 * collections of 10 to 20 ms.
 */
export type ReceivedMessages = {
  readonly [T in ResourceTypeName]: T extends "RDS" ? Uint8Array : ResourceMessages[T];
};

/** One response. Resources that could not be decoded stand in `errors` and are refused whatever the verdict. */
export type AdsResponse = {
  readonly [T in ResourceTypeName]: {
    readonly type: T;
    readonly versionInfo: string;
    readonly nonce: string;
    /** Without those that the consumer `holds`. */
    readonly resources: ReadonlyMap<string, ReceivedMessages[T]>;
    /** Content hash of each resource, as control planes of Tulle compute it too. */
    readonly versions: ReadonlyMap<string, string>;
    /**
     * To be deleted. CDS and LDS: names of earlier responses that this one leaves out, none where `errors` are. All
     * types: what had a time to live that is over; such a removal stands alone.
     */
    readonly removed: readonly string[];
    readonly errors: readonly ResourceError[];
    /** control_plane.identifier; empty where the server does not say. */
    readonly controlPlaneId: string;
  };
}[ResourceTypeName];

/** The resources that the proxy refuses, each with its reason; empty accepts the response. */
export type Verdict = readonly ResourceError[];

/**
 * - `connecting`: a stream is being opened.
 * - `streaming`: requests have been sent on an open stream.
 * - `waiting`: the stream ended; the next try is due at `retryAtMs`.
 * - `closed`: by `close()`, for good.
 */
export type AdsClientState =
  | { readonly kind: "connecting" }
  | { readonly kind: "streaming" }
  | { readonly kind: "waiting"; readonly reason: string; readonly retryAtMs: number }
  | { readonly kind: "closed" };

export interface AdsClientHandlers {
  /**
   * Apply the valid resources, keep the previous version of the others, and name these. Responses come strictly one
   * after another: the next one waits for this verdict. Subscriptions changed meanwhile are sent before the ACK, as
   * Envoy does. Rejecting the promise refuses the whole response with the error's message.
   */
  onResponse(response: AdsResponse): Verdict | Promise<Verdict>;
  /**
   * Whether the consumer goes on with this version of the resource: then it is not even decoded. Control planes send
   * all clusters and all listeners for each change of one.
   */
  holds?(type: ResourceTypeName, name: string, version: string): boolean;
  onState?(state: AdsClientState): void;
  /** How many types have a request that is held back; `isHeldBack` when one has just begun to wait. */
  onPending?(pending: number, isHeldBack: boolean): void;
}

/**
 * One try to open the stream: of who has clusters, TLS and connections of its own. Returns at once and reports by
 * events.
 */
export type OpenByteStream = (events: ByteStreamEvents) => ByteStream;

export interface AdsClient {
  /** Sets the whole subscription of a type: names, or `*` for all (CDS and LDS). Sent at the end of this turn. */
  subscribe(type: ResourceTypeName, names: SubscribedNames): void;
  readonly state: AdsClientState;
  close(): void;
}

/** Envoy: RateLimitSettings. */
export interface RateLimit {
  /** Sent at once after a long silence. */
  readonly maxTokens: number;
  readonly perSecond: number;
}

export interface AdsClientOptions {
  /** `service` and `tls` are for a target that is named; a function brings them along. */
  readonly target: AdsTarget | OpenByteStream;
  readonly node: Node;
  readonly handlers: AdsClientHandlers;
  /** Between tries to connect; 200 ms doubled up to 10 s, jittered, by default. */
  readonly backOff?: BackOffLimits;
  /** The gRPC service that carries the stream; `ads` unless told. */
  readonly service?: XdsService;
  /** With it the target is `https://host:port`; read for each connection anew. */
  readonly tls?: ClientTlsSource;
  /** Of requests; those that refuse something are limited in any case. */
  readonly rateLimit?: RateLimit | undefined;
  /** For tests; the system's clock and `Math.random` otherwise. */
  readonly clock?: Clock;
  readonly random?: () => number;
}
