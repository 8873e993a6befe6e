// The client's end of a conversation, whichever variant of xDS the server speaks: events go in, actions come out,
// without any gRPC; time and chance are numbers in the events. State of the world (sotw/) is one variant; the
// incremental one would be another.
import type { BackOffLimits } from "@tulle/timing";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { AdsClientState, ResourceError } from "./ads-client-api.ts";
import type { SubscribedNames } from "./ads-server-api.ts";
import type { Node } from "./generated/envoy/config/core/v3/base_pb.ts";
import type { ResourceType, ResourceTypeName } from "./resource-types.ts";

export interface ClientMachineOptions {
  readonly backOff: BackOffLimits;
  readonly random: () => number;
}

/** What a request says in every variant. */
export interface ClientRequest {
  readonly type: ResourceType;
  readonly nonce: string;
  readonly error: string | undefined;
  /** The first request of a stream carries the node. */
  readonly first: boolean;
}

/** A response in the protocol's terms; `names` are those of its resources, as far as they can be read. */
export interface ReceivedResponse<Content> {
  readonly typeUrl: string;
  readonly versionInfo: string;
  readonly nonce: string;
  readonly names: readonly string[];
  readonly content: Content;
}

/** What a response brings, in every variant. */
export interface ReceivedContent {
  /** Those of `names`, in their order; names of resources that only live on follow. */
  readonly resources: readonly Any[];
  readonly timesToLiveMs: ReadonlyMap<string, number>;
  readonly controlPlaneId: string;
}

export type ClientEvent<Response extends ReceivedResponse<unknown>> =
  | { readonly kind: "subscribe"; readonly changes: ReadonlyMap<ResourceTypeName, SubscribedNames> }
  | { readonly kind: "opened" }
  | { readonly kind: "response"; readonly response: Response }
  | {
      readonly kind: "verdict";
      readonly nonce: string;
      readonly stream: number;
      readonly errors: readonly ResourceError[];
      /**
       * Of `removed`: what the consumer was not told to remove after all, because the response could not be read
       * whole.
       */
      readonly kept?: readonly string[];
    }
  /**
   * The time to live of these resources is over. Answered by a verdict with an empty nonce, which nobody is told of.
   */
  | { readonly kind: "expired"; readonly type: ResourceTypeName; readonly names: readonly string[] }
  | { readonly kind: "ended"; readonly reason: string }
  /** The time of `retryAtMs` has come. */
  | { readonly kind: "wake" }
  | { readonly kind: "close" };

export type ClientAction<Request extends ClientRequest, Response extends ReceivedResponse<unknown>> =
  | { readonly kind: "open" }
  | { readonly kind: "send"; readonly request: Request }
  | Delivery<Response>
  | Expiry
  | { readonly kind: "state"; readonly state: AdsClientState }
  | { readonly kind: "ignored"; readonly typeUrl: string }
  | { readonly kind: "end" };

export interface Delivery<Response extends ReceivedResponse<unknown>> {
  readonly kind: "deliver";
  readonly type: ResourceTypeName;
  readonly stream: number;
  readonly response: Response;
  /** What the consumer is to delete, whether the response says so or leaves it out. */
  readonly removed: readonly string[];
}

export interface Expiry {
  readonly kind: "expire";
  readonly type: ResourceTypeName;
  readonly stream: number;
  readonly versionInfo: string;
  readonly names: readonly string[];
}

/** It outlives its streams: what was accepted is told to the next control plane. */
export interface ClientMachine<Request extends ClientRequest, Response extends ReceivedResponse<unknown>> {
  readonly state: AdsClientState;
  /** A response is with the consumer. */
  readonly isDeciding: boolean;
  /** The first actions: a stream is asked for. */
  start(): readonly ClientAction<Request, Response>[];
  step(event: ClientEvent<Response>, nowMs: number): readonly ClientAction<Request, Response>[];
}

/** One variant of the protocol, as a client speaks it: its messages and its machine. */
export interface ClientVariant<Request extends ClientRequest, Response extends ReceivedResponse<ReceivedContent>> {
  readonly encodeRequest: (request: Request, node: Node) => Uint8Array;
  /** One request that says what both say. `earlier` has not been sent. */
  readonly mergeRequests: (earlier: Request, later: Request) => Request;
  /** @throws if the bytes are no response of this variant */
  readonly decodeResponse: (bytes: Uint8Array) => Response;
  readonly newMachine: (options: ClientMachineOptions) => ClientMachine<Request, Response>;
}
