// What the relay has to understand of the bytes that pass, which is one variant of xDS: what the proxy asks for, what
// it has accepted, and what the saved state can answer. The session passes the bytes on without looking at them.
import type { Clock } from "@tulle/timing";
import type { ResourceType } from "@tulle/xds";
import type { StateKeeper } from "./state-keeper.ts";

export interface ConversationOptions {
  /** Takes what the proxy accepts, and has what it accepted before. */
  readonly keeper: StateKeeper;
  readonly clock: Clock;
  /** A response comes from the saved state. */
  readonly onStoodIn?: ((type: ResourceType, names: readonly string[]) => void) | undefined;
}

/** What is to become of a request of the proxy. */
export interface HeardRequest {
  /**
   * What the control plane that is connected may be told: the request as it is, or without its answer to somebody
   * else's response.
   */
  readonly forControlPlane: Uint8Array | undefined;
  /** The type of which it asks for something new that the saved state may have to answer. */
  readonly asksAnew: string | undefined;
}

export interface Conversation {
  /** A stream to the control plane is being opened: nonces of those before mean nothing to it. */
  nextStream(): void;
  /** All that the proxy asks for, as the first requests of a stream. */
  openingRequests(): readonly Uint8Array[];
  /** @throws if the bytes are no request; the words are for the proxy */
  fromProxy(bytes: Uint8Array): HeardRequest;
  /** @throws if the bytes are no response */
  fromControlPlane(bytes: Uint8Array): void;
  /** Responses out of the saved state to what nobody has answered on this stream, of one type or of all. */
  standIn(typeUrl?: string): readonly Uint8Array[];
}
