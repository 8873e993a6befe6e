// The server's end of one stream, whichever variant of xDS the client speaks: events go in, actions come out, without
// any gRPC, and time is a number. State of the world (sotw/) is one variant; the incremental one would be another.
import type {
  Acknowledgement,
  AdsServerLimits,
  IgnoredRequest,
  Rejection,
  SubscribedNames,
  TypeStatus,
} from "./ads-server-api.ts";
import type { EncodedResource } from "./encoded-resource.ts";
import type { Node } from "./generated/envoy/config/core/v3/base_pb.ts";
import type { ResourceType, ResourceTypeName } from "./resource-types.ts";

export type ServerMachineLimits = Pick<
  AdsServerLimits,
  "maxOutstandingResponses" | "ackTimeoutMs" | "dependencyTimeoutMs" | "removalTimeoutMs"
>;

export interface ServerMachineOptions {
  readonly limits: ServerMachineLimits;
  readonly noncePrefix: string;
}

/**
 * Of each type that it holds: all resources that the proxy should have. What has to be sent or removed is the
 * machine's to find.
 */
export type ServerDeclaration = ReadonlyMap<ResourceTypeName, ReadonlyMap<string, EncodedResource>>;

/** What a request says in every variant. */
export interface ServerRequest {
  /** Only the first one of a stream is sure to have it. */
  readonly node?: Node | undefined;
  readonly typeUrl: string;
  /** All that it spells out. */
  readonly names: readonly string[];
  /** Of the response that it answers; empty where it answers none. */
  readonly nonce: string;
  /** `error_detail.message`; undefined in an ACK. */
  readonly error: string | undefined;
}

/** What a response says in every variant. */
export interface ServerResponse {
  readonly type: ResourceType;
  readonly nonce: string;
  readonly resources: readonly EncodedResource[];
}

export type ServerEvent<Request extends ServerRequest> =
  | ({ readonly kind: "request" } & Request)
  | { readonly kind: "declare"; readonly changes: ServerDeclaration }
  /** The transport's buffer is full, or has drained. */
  | { readonly kind: "writable"; readonly writable: boolean }
  /** The time of `nextWakeMs` has come. */
  | { readonly kind: "wake" };

export type ServerAction<Response extends ServerResponse> =
  | ({ readonly kind: "send" } & Response)
  | { readonly kind: "subscribed"; readonly type: ResourceTypeName; readonly names: SubscribedNames }
  | { readonly kind: "acked"; readonly acknowledgement: Acknowledgement }
  | { readonly kind: "nacked"; readonly rejection: Rejection }
  /** A request that asked for nothing new and answered nothing outstanding, or a type that is not spoken. */
  | { readonly kind: "ignored"; readonly ignored: IgnoredRequest };

/** One stream's state. */
export interface ServerMachine<Request extends ServerRequest, Response extends ServerResponse> {
  step(event: ServerEvent<Request>, nowMs: number): readonly ServerAction<Response>[];
  /** How many names of its type the client asks for once the request is taken. */
  namesAfter(request: Request): number;
  /** `pending` is what the next `declare` will bring: it counts already. */
  status(pending?: ServerDeclaration): ReadonlyMap<ResourceTypeName, TypeStatus>;
  /**
   * When `wake` is due, in the events' time; undefined while nothing waits for time alone. What is past waits for
   * another event.
   */
  nextWakeMs(nowMs: number): number | undefined;
}

/** One variant of the protocol, as a server speaks it: its messages and its machine. */
export interface ServerVariant<Request extends ServerRequest, Response extends ServerResponse> {
  /** @throws if the bytes are no request of this variant; the words are for the client */
  readonly decodeRequest: (bytes: Uint8Array) => Request;
  readonly encodeResponse: (response: Response, controlPlaneId: string) => Uint8Array;
  readonly newMachine: (options: ServerMachineOptions) => ServerMachine<Request, Response>;
}
