// The server's side of one state-of-the-world ADS stream, without any gRPC: events go in, actions come out, and time is
// a number in the event. It decides what is sent, when, and in which responses.
//
// For each type a stream is in one of these states: unasked      no request yet                                       →
// `subscribed` by a request subscribed   asked for, the control plane has not declared        → `owing` by a
// declaration owing        something declared and subscribed is not sent        → `outstanding` by a response, once
// nothing holds it outstanding  sent, unanswered; newer declarations wait and merge  → `settled` by ACK, `owing` if
// more was declared settled      the proxy has accepted all that it should have       → `owing` by a declaration or a
// new name refused      a NACK: the offender's last accepted version takes its place, which makes the type `owing`
// again (or `settled` if the proxy has that already); the refusal is kept until another version is declared What holds
// a response: the answer to the one before (at most `ackTimeoutMs`), the transport's buffer, and, for listeners and
// routes, the clusters and endpoints of the same push (at most `dependencyTimeoutMs`).
import type { Rejection, TypeStatus } from "../ads-server-api.ts";
import type { EncodedResource } from "../encoded-resource.ts";
import { MakeBeforeBreak } from "../make-before-break.ts";
import { isCutShort, rejectedNames } from "../rejected-names.ts";
import { type ResourceTypeName, resourceTypeOfUrl, resourceTypes } from "../resource-types.ts";
import type {
  ServerAction,
  ServerDeclaration,
  ServerEvent,
  ServerMachine,
  ServerMachineLimits,
  ServerMachineOptions,
  ServerRequest,
  ServerResponse,
} from "../server-machine.ts";
import {
  type OutstandingResponse,
  type ServerTypeState,
  forgetOwed,
  forgetSettledRejections,
  hasRefused,
  isServed,
  isSettled,
  newServerTypeState,
  noteSent,
  owedResponses,
  reject,
  subscribe,
  typeStatus,
  versionInfoOf,
  withDeclared,
} from "./server-type-state.ts";

/** The names of a request are the whole subscription. */
export type SotwServerRequest = ServerRequest;

export interface SotwServerResponse extends ServerResponse {
  readonly versionInfo: string;
}

export type SotwServerEvent = ServerEvent<SotwServerRequest>;
export type SotwServerAction = ServerAction<SotwServerResponse>;

/** What a refusal makes the server send again one by one. */
const maxBatchResources = 100;

/** Kept for answers that may still come, of each type; a proxy that is stopped for a day gets many pushes. */
const maxOverdueResponses = 64;

export class SotwServerStream implements ServerMachine<SotwServerRequest, SotwServerResponse> {
  readonly #limits: ServerMachineLimits;
  readonly #noncePrefix: string;
  readonly #order: MakeBeforeBreak;
  readonly #types: ReadonlyMap<ResourceTypeName, ServerTypeState>;
  #sequence = 0;
  #writable = true;

  constructor({ limits, noncePrefix }: ServerMachineOptions) {
    this.#limits = limits;
    this.#noncePrefix = noncePrefix;
    this.#order = new MakeBeforeBreak(limits, {
      owes: (type) => owedResponses(this.#state(type)).length > 0,
      isSettled: (type) => isSettled(this.#state(type)),
      hasRefused: (type) => hasRefused(this.#state(type)),
      isServed: (type, name) => isServed(this.#state(type), name),
    });
    const lingering = (name: ResourceTypeName) => (name === "CDS" ? this.#order.lingering : new Map<string, never>());
    this.#types = new Map(
      resourceTypes.map((type) => [type.shortName, newServerTypeState(type, lingering(type.shortName))]),
    );
  }

  step(event: SotwServerEvent, nowMs: number): readonly SotwServerAction[] {
    const actions: SotwServerAction[] = [];
    switch (event.kind) {
      case "request":
        this.#request(event, nowMs, actions);
        break;
      case "declare":
        for (const [name, resources] of event.changes) this.#declare(this.#state(name), resources, nowMs);
        break;
      case "writable":
        this.#writable = event.writable;
        break;
      case "wake":
        break;
    }
    this.#send(nowMs, actions);
    return actions;
  }

  namesAfter({ names }: SotwServerRequest): number {
    return names.length;
  }

  status(pending?: ServerDeclaration): ReadonlyMap<ResourceTypeName, TypeStatus> {
    return new Map(
      [...this.#types].map(([name, state]) => [name, typeStatus(withDeclared(state, pending?.get(name)))]),
    );
  }

  nextWakeMs(nowMs: number): number | undefined {
    const times = [...this.#order.timesMs()];
    for (const state of this.#types.values()) {
      if (owedResponses(state).length > 0) {
        for (const { sentAtMs } of state.outstanding.values()) times.push(sentAtMs + this.#limits.ackTimeoutMs);
      }
    }
    const ahead = times.filter((timeMs) => timeMs > nowMs);
    return ahead.length === 0 ? undefined : Math.min(...ahead);
  }

  #state(name: ResourceTypeName): ServerTypeState {
    return this.#types.get(name)!;
  }

  #request(event: SotwServerEvent & { kind: "request" }, nowMs: number, actions: SotwServerAction[]): void {
    const type = resourceTypeOfUrl(event.typeUrl);
    if (type === undefined) {
      actions.push({ kind: "ignored", ignored: { reason: "unknown type", typeUrl: event.typeUrl } });
      return;
    }
    const state = this.#state(type.shortName);
    // The names are the whole subscription, and requests arrive in order: those of a request with a stale nonce are
    // still the newest that there are. Only what it says about a response is stale.
    const resubscribed = subscribe(state, event.names);
    if (event.nonce !== "") this.#answer(state, event.nonce, event.error, nowMs, actions, resubscribed);
    if (resubscribed) actions.push({ kind: "subscribed", type: type.shortName, names: state.subscribed! });
  }

  #answer(
    state: ServerTypeState,
    nonce: string,
    error: string | undefined,
    nowMs: number,
    actions: SotwServerAction[],
    resubscribed: boolean,
  ): void {
    const answered = state.outstanding.get(nonce);
    if (answered === undefined) {
      const ignored = { reason: "stale nonce", type: state.type.shortName, nonce } as const;
      if (!resubscribed) actions.push({ kind: "ignored", ignored });
      return;
    }
    // Envoy holds back its requests while it applies other types, and then sends one for the newest response only.
    const skipped: OutstandingResponse[] = [];
    for (const earlier of state.outstanding.values()) {
      state.outstanding.delete(earlier.nonce);
      if (earlier === answered) break;
      skipped.push(earlier);
    }
    if (error === undefined) this.#acknowledge(state, [...skipped, answered], nowMs, actions);
    else this.#refuse(state, skipped, answered, error, nowMs, actions);
  }

  #acknowledge(
    state: ServerTypeState,
    responses: readonly OutstandingResponse[],
    nowMs: number,
    actions: SotwServerAction[],
  ): void {
    const newest = responses.at(-1)!;
    if (state.type.fullState) state.accepted.clear();
    // A full-state response replaces the ones before it, so that only the newest tells what the proxy has.
    for (const response of state.type.fullState ? [newest] : responses) {
      for (const resource of response.resources) this.#accept(state, resource);
    }
    state.unattributed = undefined;
    state.ackedVersion = newest.versionInfo;
    state.ackedNonce = newest.nonce;
    state.ackedAtMs = nowMs;
    const names = responses.flatMap((response) => response.resources.map((resource) => resource.name));
    const { nonce, versionInfo } = newest;
    actions.push({ kind: "acked", acknowledgement: { type: state.type.shortName, nonce, versionInfo, names } });
  }

  #accept(state: ServerTypeState, resource: EncodedResource): void {
    state.accepted.set(resource.name, resource);
    state.suspects.delete(resource.name);
    // Offered once more, it may be taken: the port that it could not bind has become free. Its fallback says nothing.
    if (state.rejected.get(resource.name)?.versions.has(resource.version) === true)
      state.rejected.delete(resource.name);
    if (state.type.shortName === "EDS") this.#order.endpointsAnswered(resource.name);
    if (state.rejected.size > 0) forgetOwed(state);
  }

  #refuse(
    state: ServerTypeState,
    skipped: readonly OutstandingResponse[],
    answered: OutstandingResponse,
    message: string,
    nowMs: number,
    actions: SotwServerAction[],
  ): void {
    forgetOwed(state);
    const offered = answered.resources.map((resource) => resource.name);
    const report = (offenders: Rejection["offenders"]): void => {
      const { nonce } = answered;
      actions.push({ kind: "nacked", rejection: { type: state.type.shortName, nonce, message, offered, offenders } });
    };
    const isBatch = !state.type.fullState && answered.resources.length > 1;
    if (skipped.length > 0 || isBatch) {
      // One answer for several responses, or for a batch: any resource may be meant. Each is sent again alone.
      if (state.type.fullState) state.due = true;
      for (const resource of state.type.fullState ? [] : [...skipped, answered].flatMap(({ resources }) => resources)) {
        state.suspects.add(resource.name);
        state.resend.add(resource.name);
      }
      report([]);
      return;
    }
    const changed = answered.resources.filter(
      (resource) => state.accepted.get(resource.name)?.version !== resource.version,
    );
    const changedNames = changed.map((resource) => resource.name);
    const named = new Set(isCutShort(message) ? changedNames : rejectedNames(message, changedNames));
    const offenders = named.size > 0 ? changed.filter((resource) => named.has(resource.name)) : changed;
    // A proxy applies what it does not name. Without names nothing new can be trusted to be in effect.
    if (named.size > 0) {
      for (const resource of changed) if (!named.has(resource.name)) this.#accept(state, resource);
    }
    if (offenders.length === 0) state.unattributed = message;
    // Declared once more, a refused resource is tried once more; a full state is compared as a whole.
    if (!state.type.fullState) for (const resource of offenders) state.sent.delete(resource.name);
    for (const resource of answered.resources) {
      state.suspects.delete(resource.name);
      if (state.type.shortName === "EDS") this.#order.endpointsAnswered(resource.name);
    }
    report(offenders.map((resource) => reject(state, resource, message, nowMs)));
    // What was refused may have been replaced or dropped while the answer was on its way.
    forgetSettledRejections(state);
  }

  #declare(state: ServerTypeState, resources: ReadonlyMap<string, EncodedResource>, nowMs: number): void {
    if (resources === state.declared) return;
    const before = state.declared;
    state.declared = resources;
    if (state.type.shortName === "CDS") this.#order.clustersDeclared(before, resources, state.sent, nowMs);
    forgetSettledRejections(state);
    forgetOwed(state);
  }

  #send(nowMs: number, actions: SotwServerAction[]): void {
    if (this.#order.endLingering(nowMs)) {
      forgetSettledRejections(this.#state("CDS"));
      forgetOwed(this.#state("CDS"));
    }
    for (const state of this.#types.values()) {
      const owed = owedResponses(state);
      if (owed.length === 0) continue;
      if (this.#order.mustWait(state.type.shortName, nowMs)) continue;
      if (!this.#writable) break;
      for (const resources of this.#sendable(state, nowMs)) actions.push(this.#response(state, resources, nowMs));
    }
    this.#order.allSent();
  }

  /**
   * Those of the owed responses that may go out before one is answered. A resource is never outstanding twice: the
   * answer to the first may change what the second should be.
   */
  #sendable(state: ServerTypeState, nowMs: number): readonly (readonly EncodedResource[])[] {
    const oneAtATime = !state.type.oneResourcePerResponse || state.suspects.size > 0;
    const limit = oneAtATime ? 1 : this.#limits.maxOutstandingResponses;
    // An overdue answer must not stop the stream for ever. It still counts when it comes, unless too many are overdue.
    const awaited = [...state.outstanding.values()].filter(
      ({ sentAtMs }) => nowMs - sentAtMs < this.#limits.ackTimeoutMs,
    );
    const overdue = state.outstanding.size - awaited.length;
    const [oldest] = state.outstanding.keys();
    if (overdue > maxOverdueResponses && oldest !== undefined) state.outstanding.delete(oldest);
    const room = Math.max(0, limit - awaited.length);
    if (room === 0) return [];
    if (state.type.fullState) return owedResponses(state).slice(0, room);
    const busy = new Set(awaited.flatMap(({ resources }) => resources.map(({ name }) => name)));
    const free = owedResponses(state).filter((resources) => resources.every(({ name }) => !busy.has(name)));
    return free.length <= limit || oneAtATime ? free.slice(0, room) : inBatches(free.flat(), limit).slice(0, room);
  }

  #response(state: ServerTypeState, resources: readonly EncodedResource[], nowMs: number): SotwServerAction {
    this.#sequence += 1;
    const nonce = `${this.#noncePrefix}${this.#sequence}`;
    const versionInfo = versionInfoOf(state.type, resources);
    if (state.type.shortName === "CDS") this.#warm(state, resources);
    noteSent(state, { nonce, versionInfo, resources, sentAtMs: nowMs });
    return { kind: "send", type: state.type, nonce, versionInfo, resources };
  }

  /**
   * A proxy that receives a new or changed cluster waits for its endpoints, even if it had them ("resource warming"),
   * but its request for them looks like any ACK: they are sent again on their own account.
   */
  #warm(clusters: ServerTypeState, resources: readonly EncodedResource[]): void {
    const changed = resources.filter(({ name, version }) => clusters.sent.get(name)?.version !== version);
    this.#order.clustersSent(resources, changed);
    const endpoints = this.#state("EDS");
    for (const { endpointsName } of changed) {
      if (endpointsName !== undefined && endpoints.sent.has(endpointsName)) endpoints.resend.add(endpointsName);
    }
    forgetOwed(endpoints);
  }
}

/**
 * More resources than may be outstanding go several to a response. Every answer repeats all names that are asked for,
 * so that a thousand answers of a proxy with a thousand endpoints would be 50 MB; a batch that is refused is sent
 * again, one resource a response.
 */
function inBatches(resources: readonly EncodedResource[], batches: number): readonly (readonly EncodedResource[])[] {
  const size = Math.min(maxBatchResources, Math.ceil(resources.length / batches));
  const starts = Array.from({ length: Math.ceil(resources.length / size) }, (_, index) => index * size);
  return starts.map((start) => resources.slice(start, start + size));
}
