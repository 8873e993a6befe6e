// A state-of-the-world conversation that passes through the relay. Its names are the whole subscription of their
// type, and a response of a full-state type is all that there is of it.
//
// Answers to the relay's own responses, and to those of a stream that is gone, stop here: their nonces mean nothing
// to the control plane. If such a request also changes the names asked for, it goes on without its nonce, as a first
// one would.
import {
  type ResourceType,
  decodeRequest,
  decodeResponseParts,
  encodeResponse,
  isCutShort,
  rejectedNames,
  nameOfAny,
  resourceTypeOfUrl,
} from "@tulle/xds";
import { clone, create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { Node } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { type DiscoveryRequest, DiscoveryRequestSchema } from "@tulle/xds/envoy/service/discovery/v3/discovery_pb";
import type { Conversation, ConversationOptions, HeardRequest } from "./conversation.ts";
import type { SavedResource } from "./saved-state.ts";

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

export class SotwConversation implements Conversation {
  readonly #options: ConversationOptions;
  /** By type URL, in the order of first requests, which is the order to ask again in. */
  readonly #asked = new Map<string, Asked>();
  readonly #startedAtMs: number;
  #node: Node | undefined;
  #stream = 0;
  #ownNonces = 0;

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#startedAtMs = options.clock.nowMs();
  }

  nextStream(): void {
    this.#stream += 1;
  }

  openingRequests(): readonly Uint8Array[] {
    return [...this.#asked.values()].map(({ request }, index) => this.#withoutAnswer(request, index === 0));
  }

  fromProxy(bytes: Uint8Array): HeardRequest {
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
    const isControlPlanes = this.#takeAnswer(asked, request);
    return {
      forControlPlane: isControlPlanes ? bytes : changed ? this.#withoutAnswer(request, false) : undefined,
      asksAnew: changed && asked.type !== undefined ? request.typeUrl : undefined,
    };
  }

  fromControlPlane(bytes: Uint8Array): void {
    const { response, heartbeats: livesOn } = decodeResponseParts(bytes);
    const asked = this.#asked.get(response.typeUrl);
    if (asked === undefined) return;
    const { nonce, versionInfo } = response;
    const named = response.resources.map((any) => [nameOfAny(any), { value: any.value }] as const);
    const resources = new Map(named);
    const unanswered: Unanswered = { stream: this.#stream, versionInfo, resources, livesOn };
    asked.unanswered.delete(nonce);
    asked.unanswered.set(nonce, unanswered);
    if (!isHeartbeat(unanswered)) noteAnswered(asked, resources.keys());
  }

  standIn(typeUrl?: string): readonly Uint8Array[] {
    if (typeUrl === undefined) return [...this.#asked.values()].flatMap((asked) => this.#answer(asked));
    const asked = this.#asked.get(typeUrl);
    return asked === undefined ? [] : this.#answer(asked);
  }

  /** A subscription as the first request for its type on a stream. */
  #withoutAnswer(request: DiscoveryRequest, first: boolean): Uint8Array {
    const fresh = clone(DiscoveryRequestSchema, request);
    fresh.responseNonce = "";
    delete fresh.errorDetail;
    if (first && this.#node !== undefined) fresh.node = this.#node;
    return toBinary(DiscoveryRequestSchema, fresh);
  }

  /**
   * Takes what a request says about a response, and keeps what was accepted. True if the control plane that is
   * connected may be told: there is no nonce, or it is one of its own.
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
   * A refusal of clusters or listeners that names some: the proxy has applied the others, and keeps its version of
   * those. A control plane may never send a response that it accepts as a whole.
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

  #answer(asked: Asked): readonly Uint8Array[] {
    const { type, answered, request } = asked;
    const saved = type === undefined ? undefined : this.#options.keeper.state.get(type.shortName);
    if (type === undefined || saved === undefined) return [];
    const names = request.resourceNames;
    const isWildcard = names.includes("*") || (type.wildcard && names.length === 0);
    const wanted = isWildcard ? [...saved.resources.keys()] : names.filter((name) => saved.resources.has(name));
    const answerWith = (some: readonly string[]): Uint8Array =>
      this.#response(asked, type, saved.versionInfo, some, saved.resources);
    if (type.fullState) return answered.has("*") ? [] : [answerWith(wanted)];
    return wanted.filter((name) => !answered.has(name)).map((name) => answerWith([name]));
  }

  #response(
    asked: Asked,
    type: ResourceType,
    versionInfo: string,
    names: readonly string[],
    saved: ReadonlyMap<string, SavedResource>,
  ): Uint8Array {
    this.#ownNonces += 1;
    const nonce = `saved-${this.#stream}-${this.#ownNonces}`;
    const resources = new Map(names.map((name) => [name, saved.get(name)!]));
    asked.unanswered.set(nonce, { stream: 0, versionInfo, resources, livesOn: [] });
    noteAnswered(asked, names);
    this.#options.onStoodIn?.(type, names);
    const anys = names.map((name) => create(AnySchema, { typeUrl: type.typeUrl, value: saved.get(name)!.value }));
    return encodeResponse({ typeUrl: type.typeUrl, versionInfo, nonce, resources: anys });
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
