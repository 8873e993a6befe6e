// The client's side of a state-of-the-world ADS conversation, without any gRPC: events go in, actions come out, time
// and chance are numbers in the events. It outlives its streams: what was accepted is told to the next control plane.
//
// The connection is in one of these states:
//   connecting  a stream was asked for                        → `streaming` by `opened`, `waiting` by `ended`
//   streaming   requests were sent; responses are handed over
//               one at a time, each waiting for its verdict   → `waiting` by `ended`
//   waiting     back-off runs, doubled for each try since the
//               last response                                 → `connecting` by `wake`
//   closed      for good
// For each type: unasked → asked (a request is out) → deciding (a response is with the consumer) → asked, by ACK or
// NACK.
import { type BackOffLimits, backOffMs } from "@tulle/timing";
import type { AdsClientState } from "../ads-client-api.ts";
import type { SubscribedNames } from "../ads-server-api.ts";
import type {
  ClientAction,
  ClientEvent,
  ClientMachine,
  ClientMachineOptions,
  ClientRequest,
  ReceivedResponse,
} from "../client-machine.ts";
import { rejectionMessage } from "../rejected-names.ts";
import { type ResourceType, type ResourceTypeName, resourceTypeOfUrl, resourceTypes } from "../resource-types.ts";

export interface SotwRequest extends ClientRequest {
  readonly names: readonly string[];
  readonly versionInfo: string;
}

export interface SotwReceivedResponse<Content> extends ReceivedResponse<Content> {
  /** It only tells that resources live on (xDS protocol, "TTL"), and so says nothing about those that it leaves out. */
  readonly isHeartbeat?: boolean;
}

export type SotwClientEvent<Content> = ClientEvent<SotwReceivedResponse<Content>>;
export type SotwClientAction<Content> = ClientAction<SotwRequest, SotwReceivedResponse<Content>>;

interface ClientTypeState {
  readonly type: ResourceType;
  subscribed: SubscribedNames | undefined;
  acceptedVersion: string;
  /** Of the newest answered response of this stream; empty before it. */
  nonce: string;
  /** Names were asked for on this stream: an empty list would now mean "nothing" instead of the wildcard. */
  named: boolean;
  /** Full state: what the newest response held, and what was kept of earlier ones. */
  known: ReadonlySet<string>;
}

export class SotwClientStream<Content> implements ClientMachine<SotwRequest, SotwReceivedResponse<Content>> {
  readonly #backOff: BackOffLimits;
  readonly #random: () => number;
  readonly #types: ReadonlyMap<ResourceTypeName, ClientTypeState> = new Map(
    resourceTypes.map((type) => [
      type.shortName,
      { type, subscribed: undefined, acceptedVersion: "", nonce: "", named: false, known: new Set() },
    ]),
  );
  #state: AdsClientState = { kind: "connecting" };
  /** Counts streams, so that a verdict on a lost stream's response is not sent on the next. */
  #stream = 0;
  #attempt = 0;
  #nodeSent = false;
  #deciding:
    | { readonly type: ClientTypeState; readonly response: SotwReceivedResponse<Content> | undefined }
    | undefined;
  /** Behind the one being decided. The shell stops reading meanwhile, so that there are a few at most. */
  readonly #queue: SotwReceivedResponse<Content>[] = [];
  /** Likewise: at most as many as there are resources. */
  readonly #expired: { readonly type: ClientTypeState; readonly names: readonly string[] }[] = [];

  constructor({ backOff, random }: ClientMachineOptions) {
    this.#backOff = backOff;
    this.#random = random;
  }

  get state(): AdsClientState {
    return this.#state;
  }

  get isDeciding(): boolean {
    return this.#deciding !== undefined;
  }

  start(): readonly SotwClientAction<Content>[] {
    const actions: SotwClientAction<Content>[] = [];
    this.#connect(actions);
    return actions;
  }

  step(event: SotwClientEvent<Content>, nowMs: number): readonly SotwClientAction<Content>[] {
    const actions: SotwClientAction<Content>[] = [];
    if (this.#state.kind === "closed") return actions;
    switch (event.kind) {
      case "subscribe":
        for (const [name, names] of event.changes) this.#subscribe(this.#types.get(name)!, names, actions);
        break;
      case "opened":
        this.#opened(actions);
        break;
      case "response":
        this.#attempt = 0;
        this.#queue.push(event.response);
        break;
      case "expired":
        this.#expired.push({ type: this.#types.get(event.type)!, names: event.names });
        break;
      case "verdict":
        this.#decide(event, actions);
        break;
      case "ended":
        this.#ended(event.reason, nowMs, actions);
        break;
      case "wake":
        if (this.#state.kind === "waiting") this.#connect(actions);
        break;
      case "close":
        this.#enter({ kind: "closed" }, actions);
        actions.push({ kind: "end" });
        return actions;
    }
    this.#deliver(actions);
    return actions;
  }

  #enter(state: AdsClientState, actions: SotwClientAction<Content>[]): void {
    this.#state = state;
    actions.push({ kind: "state", state });
  }

  #connect(actions: SotwClientAction<Content>[]): void {
    this.#stream += 1;
    this.#enter({ kind: "connecting" }, actions);
    actions.push({ kind: "open" });
  }

  #opened(actions: SotwClientAction<Content>[]): void {
    this.#nodeSent = false;
    this.#enter({ kind: "streaming" }, actions);
    for (const type of this.#types.values()) {
      // Nonces belong to a stream; the version tells the new peer what this client has.
      type.nonce = "";
      type.named = false;
      if (type.subscribed !== undefined) this.#request(type, undefined, actions);
    }
  }

  #subscribe(type: ClientTypeState, names: SubscribedNames, actions: SotwClientAction<Content>[]): void {
    const before = type.subscribed;
    const same =
      before !== undefined &&
      (before === "*" || names === "*" ? before === names : before.size === names.size && before.isSubsetOf(names));
    if (same) return;
    type.subscribed = names === "*" ? "*" : new Set(names);
    if (this.#state.kind === "streaming") this.#request(type, undefined, actions);
  }

  #request(type: ClientTypeState, error: string | undefined, actions: SotwClientAction<Content>[]): void {
    const names = type.subscribed === "*" ? wildcardNames(type) : [...(type.subscribed ?? [])];
    // Asking for nothing before anything: the empty list would be taken for the wildcard.
    if (names.length === 0 && type.subscribed !== "*" && !type.named) return;
    if (type.subscribed !== "*") type.named = true;
    const { acceptedVersion: versionInfo, nonce } = type;
    const request = { type: type.type, names, versionInfo, nonce, error, first: !this.#nodeSent };
    this.#nodeSent = true;
    actions.push({ kind: "send", request });
  }

  #deliver(actions: SotwClientAction<Content>[]): void {
    while (this.#deciding === undefined) {
      if (this.#expire(actions)) return;
      const response = this.#queue.shift();
      if (response === undefined) return;
      const type = resourceTypeOfUrl(response.typeUrl);
      const state = type === undefined ? undefined : this.#types.get(type.shortName);
      if (state?.subscribed === undefined) {
        actions.push({ kind: "ignored", typeUrl: response.typeUrl });
        continue;
      }
      const names = new Set(response.names);
      const isWhole = state.type.fullState && response.isHeartbeat !== true;
      const removed = isWhole ? [...state.known].filter((name) => !names.has(name)) : [];
      if (isWhole) state.known = names;
      this.#deciding = { type: state, response };
      actions.push({ kind: "deliver", type: state.type.shortName, stream: this.#stream, response, removed });
    }
  }

  #expire(actions: SotwClientAction<Content>[]): boolean {
    const expired = this.#expired.shift();
    if (expired === undefined) return false;
    const { type, names } = expired;
    type.known = type.known.difference(new Set(names));
    this.#deciding = { type, response: undefined };
    const versionInfo = type.acceptedVersion;
    actions.push({ kind: "expire", type: type.type.shortName, stream: this.#stream, versionInfo, names });
    return true;
  }

  #decide(event: SotwClientEvent<Content> & { kind: "verdict" }, actions: SotwClientAction<Content>[]): void {
    const decided = this.#deciding;
    if (decided === undefined || (decided.response?.nonce ?? "") !== event.nonce) return;
    this.#deciding = undefined;
    const { type, response } = decided;
    if (event.kept !== undefined) type.known = type.known.union(new Set(event.kept));
    if (response === undefined) return;
    const accepted = event.errors.length === 0;
    if (accepted) type.acceptedVersion = response.versionInfo;
    // The verdict of a lost stream: its effect stays, its nonce means nothing to the next peer.
    if (event.stream !== this.#stream || this.#state.kind !== "streaming") return;
    type.nonce = response.nonce;
    this.#request(type, accepted ? undefined : rejectionMessage(type.type.shortName, event.errors), actions);
  }

  #ended(reason: string, nowMs: number, actions: SotwClientAction<Content>[]): void {
    if (this.#state.kind === "waiting") return;
    this.#queue.length = 0;
    const retryAtMs = nowMs + backOffMs(this.#backOff, this.#attempt, this.#random);
    this.#attempt += 1;
    this.#enter({ kind: "waiting", reason, retryAtMs }, actions);
  }
}

/** An empty list is the wildcard that every server knows; only types that have none by default need the newer `*`. */
function wildcardNames(state: ClientTypeState): readonly string[] {
  return state.type.wildcard && !state.named ? [] : ["*"];
}
