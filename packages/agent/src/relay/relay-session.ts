// One ADS stream of a proxy, relayed. What the proxy and the control plane say passes as it is, nonces included; the relay
// only remembers what the proxy asks for and has accepted, and steps in while there is no control plane.
//
// The session is in one of these states:
//   connecting  a stream to the control plane is being opened     → `live` by its opening, `offline` by its failing
//   live        requests and responses pass                       → `offline` by the stream's end, `connecting` by `renew`
//   offline     back-off runs; what the proxy asks for and was
//               not answered comes from the saved state            → `connecting` by time
//   closed      the proxy has gone
// A request that nobody has answered for `graceMs` is answered from the saved state in any of them, and those after it at
// once, until the control plane says something: one that accepts connections and is silent must not hold up a start.
//
// Answers to the relay's own responses, and to those of a stream that is gone, stop here: their nonces mean nothing to the
// control plane. If such a request also changes the names asked for, it goes on without its nonce, as a first one would.
import {
  type BackOffLimits,
  type ByteStream,
  type ByteStreamEvents,
  type Clock,
  type ResourceType,
  backOffMs,
  type DecodedResponse,
  decodeRequest,
  decodeResponseParts,
  encodeResponse,
  isCutShort,
  rejectedNames,
  resourceName,
  resourceTypeOfUrl,
} from "@tulle/xds";
import { clone, create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { Node } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { type DiscoveryRequest, DiscoveryRequestSchema } from "@tulle/xds/envoy/service/discovery/v3/discovery_pb";
import type { SavedResource } from "./saved-state.ts";
import type { StateKeeper } from "./state-keeper.ts";

export type RelaySessionState = "connecting" | "live" | "offline" | "closed";

export interface RelaySessionOptions {
  /** Writes to the proxy; false when it should be given no more for now. */
  readonly toProxy: (bytes: Uint8Array) => boolean;
  readonly openUpstream: (events: ByteStreamEvents) => ByteStream;
  readonly keeper: StateKeeper;
  readonly clock: Clock;
  readonly random: () => number;
  readonly backOff: BackOffLimits;
  readonly graceMs: number;
  readonly onState: (state: RelaySessionState, reason: string) => void;
  /** A response came from the saved state. */
  readonly onStoodIn?: (type: ResourceType, names: readonly string[]) => void;
}

/** A response that the proxy has not answered. */
interface Unanswered {
  /** Number of the stream that it came by; 0 for the relay's own. */
  readonly stream: number;
  readonly versionInfo: string;
  readonly resources: ReadonlyMap<string, SavedResource>;
  /** Resources that are said to live on, and are not sent again (Resource.ttl). */
  readonly livesOn: readonly string[];
}

interface Asked {
  /** The newest request, whose names are the whole subscription. */
  request: DiscoveryRequest;
  /** Of that request. */
  names: ReadonlySet<string>;
  /** undefined for types that are only passed through. */
  readonly type: ResourceType | undefined;
  /** Names that some response has held on this stream; `*` once a full-state type was answered. */
  readonly answered: Set<string>;
  /** In the order sent, by nonce. */
  readonly unanswered: Map<string, Unanswered>;
  /** Of the newest answered response, and the stream that it came by. */
  nonce: string;
  nonceStream: number;
}

/** Partial lists of names are ordinary while a proxy starts: only a settled one may shrink what is saved. */
const settledAfterMs = 60_000;

export class RelaySession {
  readonly #options: RelaySessionOptions;
  /** By type URL, in the order of first requests, which is the order to ask again in. */
  readonly #asked = new Map<string, Asked>();
  readonly #startedAtMs: number;
  #state: RelaySessionState = "closed";
  #node: Node | undefined;
  #upstream: ByteStream | undefined;
  #stream = 0;
  #attempt = 0;
  #ownNonces = 0;
  /** Responses of the control plane so far. */
  #heard = 0;
  /** The control plane has let `graceMs` pass, and has said nothing since. */
  #isSilent = false;
  #cancelRetry: () => void = () => undefined;
  readonly #cancelGraces = new Set<() => void>();

  constructor(options: RelaySessionOptions) {
    this.#options = options;
    this.#startedAtMs = options.clock.nowMs();
    this.#connect();
  }

  get state(): RelaySessionState {
    return this.#state;
  }

  /** A request of the proxy. @throws if the bytes are no DiscoveryRequest */
  fromProxy(bytes: Uint8Array): void {
    const request = decodeRequest(bytes);
    this.#node ??= request.node;
    const before = this.#asked.get(request.typeUrl);
    const asked = before ?? newAsked(request);
    const changed = before === undefined || !sameNames(before.request.resourceNames, request.resourceNames);
    asked.request = request;
    this.#asked.set(request.typeUrl, asked);
    if (changed) {
      asked.names = new Set(request.resourceNames);
      forgetUnasked(asked);
    }
    const isUpstreams = this.#takeAnswer(asked, request);
    if (this.#state === "live") {
      if (isUpstreams) this.#upstream?.write(bytes);
      else if (changed) this.#upstream?.write(this.#withoutAnswer(request, false));
    }
    if (!changed || asked.type === undefined) return;
    if (this.#state === "offline" || this.#isSilent) this.#answer(asked);
    else this.#answerLater(asked);
  }

  /** The proxy's stream takes more again. */
  proxyDrained(): void {
    this.#upstream?.resume();
  }

  /**
   * Changes to a new stream, which shows the newest certificate: the control plane ends a connection when the one that was shown
   * expires. What the proxy asked for is asked for again there; it notices nothing.
   */
  renew(): void {
    if (this.#state !== "live") return;
    this.#upstream?.close();
    this.#connect();
  }

  close(): void {
    if (this.#state === "closed") return;
    this.#cancelRetry();
    for (const cancel of this.#cancelGraces) cancel();
    this.#upstream?.close();
    this.#upstream = undefined;
    this.#enter("closed", "the proxy has gone");
  }

  #enter(state: RelaySessionState, reason: string): void {
    this.#state = state;
    this.#options.onState(state, reason);
  }

  #connect(): void {
    this.#stream += 1;
    const stream = this.#stream;
    const ifCurrent = (work: () => void): void => {
      if (this.#state !== "closed" && this.#stream === stream) work();
    };
    this.#enter("connecting", "");
    this.#upstream = this.#options.openUpstream({
      onOpen: () => ifCurrent(() => this.#opened()),
      onMessage: (bytes) => ifCurrent(() => this.#fromUpstream(bytes)),
      onEnd: (reason) => ifCurrent(() => this.#ended(reason)),
    });
  }

  #opened(): void {
    this.#enter("live", "");
    let first = true;
    for (const { request } of this.#asked.values()) {
      this.#upstream?.write(this.#withoutAnswer(request, first));
      first = false;
    }
  }

  #ended(reason: string): void {
    this.#upstream = undefined;
    this.#enter("offline", reason);
    const { backOff, random, clock } = this.#options;
    this.#cancelRetry = clock.after(backOffMs(backOff, this.#attempt, random), () => this.#connect());
    this.#attempt += 1;
    for (const asked of this.#asked.values()) this.#answer(asked);
  }

  /** A subscription as the first request for its type on a stream. */
  #withoutAnswer(request: DiscoveryRequest, first: boolean): Uint8Array {
    const fresh = clone(DiscoveryRequestSchema, request);
    fresh.responseNonce = "";
    delete fresh.errorDetail;
    if (first && this.#node !== undefined) fresh.node = this.#node;
    return toBinary(DiscoveryRequestSchema, fresh);
  }

  #fromUpstream(bytes: Uint8Array): void {
    let decoded: DecodedResponse;
    try {
      decoded = decodeResponseParts(bytes);
    } catch (error) {
      this.#upstream?.close();
      this.#ended(`the control plane sent no DiscoveryResponse: ${String(error)}`);
      return;
    }
    this.#attempt = 0;
    this.#isSilent = false;
    this.#heard += 1;
    const { response, heartbeats: livesOn } = decoded;
    const asked = this.#asked.get(response.typeUrl);
    if (asked !== undefined) {
      const { nonce, versionInfo } = response;
      const named = response.resources.map(({ value }) => [resourceName(value), { value }] as const);
      const resources = new Map(named);
      asked.unanswered.delete(nonce);
      asked.unanswered.set(nonce, { stream: this.#stream, versionInfo, resources, livesOn });
      if (!isHeartbeat(asked.unanswered.get(nonce)!)) noteAnswered(asked, resources.keys());
    }
    if (!this.#options.toProxy(bytes)) this.#upstream?.pause();
  }

  /**
   * Takes what a request says about a response, and keeps what was accepted. True if the control plane that is connected
   * may be told: there is no nonce, or it is one of its own.
   */
  #takeAnswer(asked: Asked, request: DiscoveryRequest): boolean {
    const nonce = request.responseNonce;
    // Before the first answer on this stream the control plane knows the subscription only by the relay's own request.
    if (nonce === "") return true;
    const answered = asked.unanswered.get(nonce);
    if (answered === undefined) return asked.nonce === nonce && asked.nonceStream === this.#stream;
    asked.nonce = nonce;
    asked.nonceStream = answered.stream;
    // One answer covers the responses before it, as in the server's own machine.
    for (const [earlierNonce, earlier] of asked.unanswered) {
      asked.unanswered.delete(earlierNonce);
      if (request.errorDetail === undefined) this.#keep(asked, earlier);
      else if (earlier === answered) this.#keepUnnamed(asked, earlier, request.errorDetail.message);
      if (earlier === answered) break;
    }
    return answered.stream === this.#stream;
  }

  #keep(asked: Asked, accepted: Unanswered): void {
    if (asked.type === undefined || accepted.stream === 0) return;
    const { shortName, fullState } = asked.type;
    const { keeper, clock } = this.#options;
    if (fullState) {
      // What lives on stays as it was; a heartbeat says nothing of the others.
      if (isHeartbeat(accepted)) return;
      const saved = keeper.state.get(shortName)?.resources;
      const resources = new Map(accepted.resources);
      for (const name of accepted.livesOn) {
        const kept = saved?.get(name);
        if (kept !== undefined && !resources.has(name)) resources.set(name, kept);
      }
      keeper.replace(shortName, accepted.versionInfo, resources);
      return;
    }
    const wanted = new Map(
      wantedOf(asked, accepted.resources.keys()).map((name) => [name, accepted.resources.get(name)!]),
    );
    if (wanted.size > 0) keeper.merge(shortName, accepted.versionInfo, wanted);
    const { names } = asked;
    const isSettled = clock.nowMs() - this.#startedAtMs >= settledAfterMs;
    if (isSettled && !names.has("*")) keeper.keepOnly(shortName, names);
  }

  /**
   * A refusal of clusters or listeners that names some: the proxy has applied the others, and keeps its version of those.
   * A control plane may never send a response that it accepts as a whole.
   */
  #keepUnnamed(asked: Asked, refused: Unanswered, message: string): void {
    if (asked.type?.fullState !== true || isCutShort(message)) return;
    const offenders = new Set(rejectedNames(message, [...refused.resources.keys()]));
    if (offenders.size === 0) return;
    const saved = this.#options.keeper.state.get(asked.type.shortName)?.resources;
    const resources = new Map<string, SavedResource>();
    for (const [name, resource] of refused.resources) {
      const kept = offenders.has(name) ? saved?.get(name) : resource;
      if (kept !== undefined) resources.set(name, kept);
    }
    this.#keep(asked, { ...refused, resources });
  }

  #answerLater(asked: Asked): void {
    const heardBefore = this.#heard;
    const cancel = this.#options.clock.after(this.#options.graceMs, () => {
      this.#cancelGraces.delete(cancel);
      if (this.#heard === heardBefore) this.#isSilent = true;
      this.#answer(asked);
    });
    this.#cancelGraces.add(cancel);
  }

  /** Answers from the saved state what nobody has answered on this stream. */
  #answer(asked: Asked): void {
    const { type, answered, request } = asked;
    const saved = type === undefined ? undefined : this.#options.keeper.state.get(type.shortName);
    if (type === undefined || saved === undefined) return;
    const names = request.resourceNames;
    const isWildcard = names.includes("*") || (type.wildcard && names.length === 0);
    const wanted = isWildcard ? [...saved.resources.keys()] : names.filter((name) => saved.resources.has(name));
    if (type.fullState) {
      if (!answered.has("*")) this.#send(asked, type, saved.versionInfo, wanted, saved.resources);
      return;
    }
    for (const name of wanted) {
      if (!answered.has(name)) this.#send(asked, type, saved.versionInfo, [name], saved.resources);
    }
  }

  #send(
    asked: Asked,
    type: ResourceType,
    versionInfo: string,
    names: readonly string[],
    saved: ReadonlyMap<string, SavedResource>,
  ): void {
    this.#ownNonces += 1;
    const nonce = `saved-${this.#stream}-${this.#ownNonces}`;
    const resources = new Map(names.map((name) => [name, saved.get(name)!]));
    asked.unanswered.set(nonce, { stream: 0, versionInfo, resources, livesOn: [] });
    noteAnswered(asked, names);
    this.#options.onStoodIn?.(type, names);
    const anys = names.map((name) => create(AnySchema, { typeUrl: type.typeUrl, value: saved.get(name)!.value }));
    this.#options.toProxy(encodeResponse({ typeUrl: type.typeUrl, versionInfo, nonce, resources: anys }));
  }
}

function newAsked(request: DiscoveryRequest): Asked {
  const type = resourceTypeOfUrl(request.typeUrl);
  return { request, names: new Set(), type, answered: new Set(), unanswered: new Map(), nonce: "", nonceStream: 0 };
}

function isHeartbeat({ resources, livesOn }: Unanswered): boolean {
  return resources.size === 0 && livesOn.length > 0;
}

function noteAnswered(asked: Asked, names: Iterable<string>): void {
  if (asked.type?.fullState === true) asked.answered.add("*");
  else for (const name of wantedOf(asked, names)) asked.answered.add(name);
}

/** A control plane may send what nobody asks for; to remember it would have no end. */
function wantedOf({ names }: Asked, offered: Iterable<string>): readonly string[] {
  return names.has("*") ? [...offered] : [...offered].filter((name) => names.has(name));
}

/** A name given up and asked for again wants a new answer; so does a full-state type whose names have changed. */
function forgetUnasked(asked: Asked): void {
  const { names } = asked;
  if (asked.type?.fullState === true) asked.answered.clear();
  for (const name of asked.answered) if (!names.has(name)) asked.answered.delete(name);
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && new Set(a).isSubsetOf(new Set(b));
}
