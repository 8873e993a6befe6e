// What the server knows about one resource type of one stream: what the proxy asked for, what it should have, what it
// was sent, what it accepted and what it refused. The questions asked of that state are pure functions here.
import type { RejectedResource, SubscribedNames, SyncState, TypeStatus } from "../ads-server-api.ts";
import { type EncodedResource, contentVersion } from "../encoded-resource.ts";
import type { Lingering } from "../make-before-break.ts";
import type { ResourceType } from "../resource-types.ts";

/** A response that was sent and is neither acknowledged nor refused. */
export interface OutstandingResponse {
  readonly nonce: string;
  readonly versionInfo: string;
  readonly resources: readonly EncodedResource[];
  readonly sentAtMs: number;
}

/** Every version of a resource that the proxy refused since the declared one last changed. */
interface Rejected extends RejectedResource {
  readonly versions: ReadonlySet<string>;
}

export interface ServerTypeState {
  readonly type: ResourceType;
  /** undefined: never asked for. An empty set: asked for once, and given up. */
  subscribed: SubscribedNames | undefined;
  /** undefined: the control plane has not answered yet. */
  declared: ReadonlyMap<string, EncodedResource> | undefined;
  /** Served though they are declared no more. */
  readonly lingering: ReadonlyMap<string, Lingering>;
  /** What the newest response that held the name held. */
  readonly sent: Map<string, EncodedResource>;
  readonly accepted: Map<string, EncodedResource>;
  readonly rejected: Map<string, Rejected>;
  /** In the order sent. */
  readonly outstanding: Map<string, OutstandingResponse>;
  /** Names that must be sent though the proxy has them: it waits for them anew, or their acknowledgement was lost. */
  readonly resend: Set<string>;
  /** Names whose refusal could not be told apart; while there are some, responses go out one at a time. */
  readonly suspects: Set<string>;
  /** Full state: a response is owed even if nothing has changed (new subscription). */
  due: boolean;
  /** What `owedResponses` found last; undefined after a change of what it depends on. */
  owed: (readonly EncodedResource[])[] | undefined;
  /** A refusal that no resource could be blamed for. */
  unattributed: string | undefined;
  sentVersion: string;
  sentNonce: string;
  ackedVersion: string;
  ackedNonce: string;
  sentAtMs: number;
  ackedAtMs: number;
}

export function newServerTypeState(type: ResourceType, lingering: ReadonlyMap<string, Lingering>): ServerTypeState {
  return {
    type,
    subscribed: undefined,
    declared: undefined,
    lingering,
    sent: new Map(),
    accepted: new Map(),
    rejected: new Map(),
    outstanding: new Map(),
    resend: new Set(),
    suspects: new Set(),
    due: false,
    owed: undefined,
    unattributed: undefined,
    sentVersion: "",
    sentNonce: "",
    ackedVersion: "",
    ackedNonce: "",
    sentAtMs: 0,
    ackedAtMs: 0,
  };
}

/**
 * What to serve in place of a declared resource: itself, or the version accepted last if the proxy refused it. Leaving
 * the offender out would delete what the proxy still runs (state of the world), so that it is left out only where it is
 * known to run nothing: before the first ACK of a stream it may run a version from before, and is offered the refused
 * one again.
 */
function servable(state: ServerTypeState, resource: EncodedResource): EncodedResource | undefined {
  const rejected = state.rejected.get(resource.name);
  if (rejected === undefined || !rejected.versions.has(resource.version)) return resource;
  const previous = state.accepted.get(resource.name);
  if (previous !== undefined && !rejected.versions.has(previous.version)) return previous;
  return state.type.fullState && state.ackedNonce === "" ? resource : undefined;
}

function isSubscribed(state: ServerTypeState, name: string): boolean {
  return state.subscribed === "*" || (state.subscribed?.has(name) ?? false);
}

/** Whether a name would be sent if it were owed. */
export function isServed(state: ServerTypeState, name: string): boolean {
  const resource = state.declared?.get(name);
  return isSubscribed(state, name) && resource !== undefined && servable(state, resource) !== undefined;
}

/** All resources that the proxy subscribes to and should have now. */
function offered(state: ServerTypeState): ReadonlyMap<string, EncodedResource> {
  const { declared, subscribed, lingering, rejected } = state;
  if (declared === undefined || subscribed === undefined) return new Map();
  if (subscribed === "*" && lingering.size === 0 && rejected.size === 0) return declared;
  const result = new Map<string, EncodedResource>();
  const add = (resource: EncodedResource | undefined): void => {
    const served = resource === undefined ? undefined : servable(state, resource);
    if (served !== undefined) result.set(served.name, served);
  };
  if (subscribed === "*") {
    for (const resource of declared.values()) add(resource);
    for (const { resource } of lingering.values()) add(resource);
  } else {
    for (const name of subscribed) add(declared.get(name) ?? lingering.get(name)?.resource);
  }
  return result;
}

function sameVersions(a: ReadonlyMap<string, EncodedResource>, b: ReadonlyMap<string, EncodedResource>): boolean {
  if (a.size !== b.size) return false;
  for (const [name, resource] of a) if (b.get(name)?.version !== resource.version) return false;
  return true;
}

/**
 * The responses that are owed, each as its list of resources: at most one for a full-state type, one a resource for the
 * others. Empty when the proxy was sent everything that it should have. Kept until `forgetOwed`: a proxy with a
 * thousand endpoints acknowledges a thousand responses, and none of these answers changes the rest.
 */
export function owedResponses(state: ServerTypeState): readonly (readonly EncodedResource[])[] {
  state.owed ??= findOwed(state);
  return state.owed;
}

export function forgetOwed(state: ServerTypeState): void {
  state.owed = undefined;
}

function findOwed(state: ServerTypeState): (readonly EncodedResource[])[] {
  if (state.declared === undefined || state.subscribed === undefined) return [];
  const wanted = offered(state);
  if (state.type.fullState) {
    return state.due || !sameVersions(wanted, state.sent) ? [[...wanted.values()]] : [];
  }
  const changed: (readonly EncodedResource[])[] = [];
  for (const resource of wanted.values()) {
    const known = state.sent.get(resource.name)?.version === resource.version;
    if (!known || state.resend.has(resource.name)) changed.push([resource]);
  }
  return changed;
}

/** Notes that a response went out with one or several of the owed ones. */
export function noteSent(state: ServerTypeState, response: OutstandingResponse): void {
  if (state.type.fullState) state.sent.clear();
  for (const resource of response.resources) {
    state.sent.set(resource.name, resource);
    state.resend.delete(resource.name);
  }
  state.due = false;
  const names = new Set(response.resources.map((resource) => resource.name));
  state.owed = state.type.fullState ? [] : state.owed?.filter((owed) => !owed.every(({ name }) => names.has(name)));
  state.outstanding.set(response.nonce, response);
  state.sentVersion = response.versionInfo;
  state.sentNonce = response.nonce;
  state.sentAtMs = response.sentAtMs;
}

/** Nothing is owed and nothing is unanswered. */
export function isSettled(state: ServerTypeState): boolean {
  return state.outstanding.size === 0 && owedResponses(state).length === 0;
}

/** `version_info`: a resource's own version where it is alone, else the hash of all names and versions. */
export function versionInfoOf(type: ResourceType, resources: readonly EncodedResource[]): string {
  if (type.oneResourcePerResponse && resources.length === 1) return resources[0]!.version;
  const lines = resources.map((resource) => `${resource.name}\n${resource.version}\n`).sort();
  return contentVersion(new TextEncoder().encode(lines.join("")));
}

/** Whether the proxy runs something else than what is declared, because it refused that. */
export function hasRefused(state: ServerTypeState): boolean {
  return state.rejected.size > 0 || state.unattributed !== undefined;
}

/** The state as it will be once `declared` is taken over; the same object where that is undefined. */
export function withDeclared(
  state: ServerTypeState,
  declared: ReadonlyMap<string, EncodedResource> | undefined,
): ServerTypeState {
  if (declared === undefined || declared === state.declared) return state;
  const { rejected, suspects } = state;
  const next = { ...state, declared, owed: undefined, rejected: new Map(rejected), suspects: new Set(suspects) };
  forgetSettledRejections(next);
  return next;
}

function syncState(state: ServerTypeState): SyncState {
  if (hasRefused(state)) return "ERROR";
  if (state.sentNonce === "") return "NOT SENT";
  if (state.subscribed !== undefined && state.subscribed !== "*" && state.subscribed.size === 0) return "IGNORED";
  return isSettled(state) ? "SYNCED" : "STALE";
}

export function typeStatus(state: ServerTypeState): TypeStatus {
  const rejected: RejectedResource[] = [...state.rejected.values()].map(({ name, version, message, atMs }) => ({
    name,
    version,
    message,
    atMs,
  }));
  if (state.unattributed !== undefined) {
    rejected.push({ name: "", version: state.sentVersion, message: state.unattributed, atMs: state.ackedAtMs });
  }
  return {
    type: state.type.shortName,
    state: syncState(state),
    subscribed: state.subscribed,
    sentVersion: state.sentVersion,
    sentNonce: state.sentNonce,
    ackedVersion: state.ackedVersion,
    ackedNonce: state.ackedNonce,
    sentAtMs: state.sentAtMs,
    ackedAtMs: state.ackedAtMs,
    rejected,
  };
}

/** Forgets refusals of versions that are declared no more, and of names that are asked for no more. */
export function forgetSettledRejections(state: ServerTypeState): void {
  for (const [name, rejected] of state.rejected) {
    const version = (state.declared?.get(name) ?? state.lingering.get(name)?.resource)?.version;
    const isCurrent = version !== undefined && rejected.versions.has(version);
    if (isCurrent && isSubscribed(state, name)) continue;
    state.rejected.delete(name);
    // What was sent last is not what the proxy has, even if the refused version should be declared again before the
    // next push.
    if (state.type.fullState) state.due = true;
  }
  for (const name of state.suspects) {
    if (!state.declared?.has(name) || !isSubscribed(state, name)) state.suspects.delete(name);
  }
}

/** Notes a refusal; the version joins those refused before, so that a refused fallback is not offered for ever. */
export function reject(
  state: ServerTypeState,
  resource: EncodedResource,
  message: string,
  nowMs: number,
): RejectedResource {
  const before = state.rejected.get(resource.name);
  const rejection = { name: resource.name, version: resource.version, message, atMs: nowMs };
  state.rejected.set(resource.name, {
    ...rejection,
    versions: new Set([...(before?.versions ?? []), resource.version]),
  });
  return rejection;
}

/** Takes a request's names; true if the subscription is new or has changed. */
export function subscribe(state: ServerTypeState, names: readonly string[]): boolean {
  const before = state.subscribed;
  const isWildcard =
    names.includes("*") || (state.type.wildcard && names.length === 0 && (before === undefined || before === "*"));
  const after: SubscribedNames = isWildcard ? "*" : new Set(names);
  if (before !== undefined && sameNames(before, after)) return false;
  state.subscribed = after;
  forgetOwed(state);
  if (state.type.fullState) state.due = true;
  else forgetUnsubscribed(state, after);
  return true;
}

function sameNames(a: SubscribedNames, b: SubscribedNames): boolean {
  if (a === "*" || b === "*") return a === b;
  return a.size === b.size && a.isSubsetOf(b);
}

/** A name that is given up is deleted by the proxy: asked for again, it is sent again. */
function forgetUnsubscribed(state: ServerTypeState, names: SubscribedNames): void {
  if (names === "*") return;
  for (const known of [state.sent, state.accepted, state.resend, state.suspects, state.rejected]) {
    for (const name of known.keys()) if (!names.has(name)) known.delete(name);
  }
}
