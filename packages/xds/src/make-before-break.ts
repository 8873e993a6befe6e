// Make before break, whatever the variant of xDS: listeners and routes wait until the proxy has the clusters that
// they name, endpoints included, and a cluster that is dropped stays until no listener or route was written with it
// in view.
import type { AdsServerLimits } from "./ads-server-api.ts";
import type { EncodedResource } from "./encoded-resource.ts";
import type { ResourceTypeName } from "./resource-types.ts";

/** What the order asks of a stream's types, however a variant keeps them. */
export interface OrderedTypes {
  /** Something that the proxy should have has not been sent. */
  owes(type: ResourceTypeName): boolean;
  /** Nothing is owed and nothing is unanswered. */
  isSettled(type: ResourceTypeName): boolean;
  /** The proxy runs something else than what is declared, because it refused that. */
  hasRefused(type: ResourceTypeName): boolean;
  /** The proxy asks for it, and it would be sent if it were owed. */
  isServed(type: ResourceTypeName, name: string): boolean;
}

/** A cluster that is kept for a while after the control plane dropped it. */
export interface Lingering {
  readonly resource: EncodedResource;
  readonly untilMs: number;
}

type Resources = ReadonlyMap<string, EncodedResource>;

/** Types that may name clusters, and so wait for them when added and hold them when removed. */
const dependents: ReadonlySet<ResourceTypeName> = new Set(["LDS", "ECDS", "RDS"]);

export class MakeBeforeBreak {
  readonly #limits: Pick<AdsServerLimits, "dependencyTimeoutMs" | "removalTimeoutMs">;
  readonly #types: OrderedTypes;
  readonly #lingering = new Map<string, Lingering>();
  /** Endpoints that a cluster just sent waits for: listeners and routes come after them. */
  readonly #warming = new Set<string>();
  /** When listeners or routes began to wait for clusters; undefined while none does. */
  #heldSinceMs: number | undefined;

  constructor(limits: Pick<AdsServerLimits, "dependencyTimeoutMs" | "removalTimeoutMs">, types: OrderedTypes) {
    this.#limits = limits;
    this.#types = types;
  }

  /** By name; they are served beside those that are declared. */
  get lingering(): ReadonlyMap<string, Lingering> {
    return this.#lingering;
  }

  /**
   * The union first: routes that still name a dropped cluster are in effect until their successors are acknowledged.
   */
  clustersDeclared(before: Resources | undefined, declared: Resources, sent: Resources, nowMs: number): void {
    for (const name of this.#lingering.keys()) if (declared.has(name)) this.#lingering.delete(name);
    for (const [name, resource] of before ?? []) {
      if (declared.has(name) || !sent.has(name)) continue;
      this.#lingering.set(name, { resource, untilMs: nowMs + this.#limits.removalTimeoutMs });
    }
  }

  /** Of the clusters that the proxy is to have by now, `changed` are those that it did not have like this. */
  clustersSent(present: Iterable<EncodedResource>, changed: readonly EncodedResource[]): void {
    const awaited = new Set([...present].map((cluster) => cluster.endpointsName));
    for (const name of this.#warming) if (!awaited.has(name)) this.#warming.delete(name);
    for (const { endpointsName } of changed) if (endpointsName !== undefined) this.#warming.add(endpointsName);
  }

  /** The proxy has accepted these endpoints, or has refused them: nothing waits for them any more. */
  endpointsAnswered(name: string): void {
    this.#warming.delete(name);
  }

  /** What names a cluster waits until the proxy has it, endpoints included. */
  mustWait(type: ResourceTypeName, nowMs: number): boolean {
    if (!dependents.has(type) || this.#areClustersReady()) return false;
    this.#heldSinceMs ??= nowMs;
    return nowMs - this.#heldSinceMs < this.#limits.dependencyTimeoutMs;
  }

  /** What may be sent now has been sent. */
  allSent(): void {
    if (this.#heldSinceMs === undefined) return;
    const isHeld = !this.#areClustersReady() && [...dependents].some((type) => this.#types.owes(type));
    if (!isHeld) this.#heldSinceMs = undefined;
  }

  /**
   * Dropped clusters go once no listener or route that the proxy may still use was written with them in view. True if
   * some went.
   */
  endLingering(nowMs: number): boolean {
    const before = this.#lingering.size;
    if (before === 0) return false;
    // A proxy that refused its newest routes goes on with older ones, which may name what was dropped.
    const settled = [...dependents].every((type) => this.#types.isSettled(type) && !this.#types.hasRefused(type));
    for (const [name, { untilMs }] of this.#lingering) {
      if (settled || untilMs <= nowMs) this.#lingering.delete(name);
    }
    return this.#lingering.size < before;
  }

  /** When time alone changes the order. */
  timesMs(): readonly number[] {
    const held = this.#heldSinceMs === undefined ? [] : [this.#heldSinceMs + this.#limits.dependencyTimeoutMs];
    return [...held, ...[...this.#lingering.values()].map(({ untilMs }) => untilMs)];
  }

  #areClustersReady(): boolean {
    if (!this.#types.isSettled("CDS")) return false;
    // Names that the proxy has not asked for by now it does not need: Envoy asks before it acknowledges the clusters.
    return ![...this.#warming].some((name) => this.#types.isServed("EDS", name));
  }
}
