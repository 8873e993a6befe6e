// The newest picture of the mesh: watches the store, gathers changes, and builds the part of the picture that they
// touch.
import type { ProcessSpan, ProcessTracer } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import { type Kind, kindDefinitions, type MeshResource, type Store, type StoreChange } from "@tulle/config";
import { buildEndpoints } from "../snapshot/build-endpoints.ts";
import { buildSnapshot } from "../snapshot/build-snapshot.ts";
import type { ResourceReader } from "../snapshot/resource-reader.ts";
import type { EndpointSnapshot, MeshService, MeshSnapshot, TlsVersion } from "../snapshot/mesh-snapshot.ts";
import { sameWorkloads, serviceWorkloads, type ServiceWorkloads } from "../snapshot/service-workloads.ts";
import type { LoginProviders } from "../login-providers/login-providers.ts";
import type { JwksKeys } from "../jwks/jwks-keys.ts";
import type { RolloutController } from "../rollouts/rollout-controller.ts";
import { Debounce, type DebounceTimes } from "./debounce.ts";
import type { ControlPlaneMetrics, PushTrigger } from "./metrics.ts";
import { triggerOf } from "./store-events.ts";

export interface MeshChange {
  /** Services, routes or rules have changed: views are made anew. */
  readonly routing: boolean;
  /** Endpoints may have changed; with neither of the two, Secrets alone have. */
  readonly endpoints: boolean;
  /** When the first of the changes arrived, in milliseconds of the clock. */
  readonly sinceMs: number;
  /** Ended by whoever sends it to the last proxy. */
  readonly span?: ProcessSpan | undefined;
}

export interface MeshStateOptions {
  readonly store: Store;
  /** What is routed by: the store, or the store without what was set aside. */
  readonly reader: ResourceReader & { refresh(): void };
  readonly clock: Clock;
  readonly debounce: DebounceTimes;
  readonly metrics: Pick<ControlPlaneMetrics, "debounceSeconds" | "snapshotSeconds" | "triggers">;
  /** Fetches the keys of token issuers; none are when missing. */
  readonly jwks?: Pick<JwksKeys, "keys" | "want" | "follow">;
  readonly logins?: Pick<LoginProviders, "endpoints" | "want" | "follow">;
  /** What is laid over the routes. */
  readonly rollouts?: Pick<RolloutController, "overlays" | "follow">;
  /** Of the authority whose certificates the workloads have; nothing is encrypted when missing. */
  readonly trustDomain?: string | undefined;
  /** See `MeshSnapshot.minimumTls`. */
  readonly minimumTls?: TlsVersion | undefined;
  readonly tracer?: Pick<ProcessTracer, "start"> | undefined;
}

export class MeshState {
  readonly #options: MeshStateOptions;
  readonly #debounce: Debounce;
  readonly #unwatch: () => void;
  #snapshot: MeshSnapshot;
  #endpoints: EndpointSnapshot;
  #workloads: ServiceWorkloads = new Map();
  readonly #listeners: ((change: MeshChange) => void)[] = [];
  #pending:
    | { routing: boolean; endpoints: boolean; readonly sinceMs: number; readonly triggers: Set<PushTrigger> }
    | undefined;

  constructor(options: MeshStateOptions) {
    this.#options = options;
    options.reader.refresh();
    this.#refreshWorkloads();
    this.#snapshot = this.#buildSnapshot();
    this.#endpoints = buildEndpoints(options.reader, this.#snapshot);
    this.#debounce = new Debounce(options.debounce, options.clock, () => this.#rebuild());
    this.#unwatch = options.store.watch((changes) => this.#changed(changes));
    // Keys and endpoints of issuers come and go, roll-outs go on: what hangs on them is made anew.
    for (const source of [options.jwks, options.logins, options.rollouts])
      source?.follow(() => this.#request(true, true, ["config"]));
  }

  get snapshot(): MeshSnapshot {
    return this.#snapshot;
  }

  get endpoints(): EndpointSnapshot {
    return this.#endpoints;
  }

  /** Whether the store holds more than the picture shows. */
  get isPending(): boolean {
    return this.#pending !== undefined;
  }

  close(): void {
    this.#unwatch();
    this.#debounce.close();
  }

  /** Calls back after each change, in the order of these calls. */
  follow(listener: (change: MeshChange) => void): void {
    this.#listeners.push(listener);
  }

  #buildSnapshot(): MeshSnapshot {
    const { reader, jwks, logins, rollouts, trustDomain, minimumTls, metrics } = this.#options;
    const options = {
      rollouts: rollouts?.overlays,
      fetchedKeys: jwks?.keys,
      discoveredEndpoints: logins?.endpoints,
      trustDomain,
      minimumTls,
      workloads: this.#workloads,
    };
    const startMs = performance.now();
    const snapshot = buildSnapshot(reader, options);
    metrics.snapshotSeconds.record((performance.now() - startMs) / 1000);
    jwks?.want(snapshot.requestAuthentications ?? []);
    logins?.want((snapshot.browserLogins ?? []).flatMap(({ discovery }) => discovery ?? []));
    return snapshot;
  }

  /** Whether they have changed. */
  #refreshWorkloads(): boolean {
    const { reader, trustDomain } = this.#options;
    if (trustDomain === undefined) return false;
    const workloads = serviceWorkloads(reader, trustDomain);
    if (sameWorkloads(workloads, this.#workloads)) return false;
    this.#workloads = workloads;
    return true;
  }

  #changed(changes: readonly StoreChange[]): void {
    const asksPods = this.#snapshot.services.some(choosesPods);
    const touching = changes.filter((change) => matters(change, asksPods) && affects(change) !== "nothing");
    const touched = new Set(touching.map(affects));
    const [routing, endpoints, secrets] = [touched.has("routing"), touched.has("endpoints"), touched.has("secrets")];
    if (!routing && !endpoints && !secrets) return;
    this.#request(
      routing,
      endpoints,
      touching.map(({ resource }) => triggerOf(resource)),
    );
  }

  #request(routing: boolean, endpoints: boolean, triggers: Iterable<PushTrigger>): void {
    const sinceMs = this.#options.clock.nowMs();
    this.#pending ??= { routing: false, endpoints: false, sinceMs, triggers: new Set() };
    this.#pending.routing ||= routing;
    this.#pending.endpoints ||= endpoints;
    for (const trigger of triggers) this.#pending.triggers.add(trigger);
    this.#debounce.signal();
  }

  #rebuild(): void {
    const change = this.#pending;
    if (change === undefined) return;
    this.#pending = undefined;
    const { reader, metrics, clock } = this.#options;
    metrics.debounceSeconds.record((clock.nowMs() - change.sinceMs) / 1000);
    for (const trigger of change.triggers) metrics.triggers(trigger).increment();
    // Callers accept the identities behind a Service, and speak as all there do: a new one changes clusters, before its
    // first endpoint is sent.
    if (this.#refreshWorkloads()) change.routing = true;
    const span = this.#startSpan(change);
    if (change.routing) {
      this.#traced("accept", span, () => reader.refresh());
      this.#snapshot = this.#traced("snapshot", span, () => this.#buildSnapshot());
    }
    if (change.routing || change.endpoints) {
      this.#endpoints = this.#traced("endpoints", span, () => buildEndpoints(reader, this.#snapshot));
    }
    for (const listener of this.#listeners) listener({ ...change, span });
  }

  /** From the first of the changes on: how long they were gathered is the first part of it. */
  #startSpan({ sinceMs, triggers }: { readonly sinceMs: number; readonly triggers: ReadonlySet<PushTrigger> }) {
    const { tracer, clock } = this.#options;
    if (tracer === undefined) return undefined;
    const startMs = performance.timeOrigin + performance.now() - (clock.nowMs() - sinceMs);
    const span = tracer.start("change", { startMs });
    span?.set("tulle.triggers", [...triggers].join(","));
    tracer.start("debounce", { parent: span, startMs })?.end();
    return span;
  }

  #traced<Result>(name: string, parent: ProcessSpan | undefined, work: () => Result): Result {
    if (parent === undefined) return work();
    const span = this.#options.tracer?.start(name, { parent });
    try {
      return work();
    } finally {
      span?.end();
    }
  }
}

function affects({ resource }: StoreChange): (typeof kindDefinitions)[Kind]["affects"] {
  return kindDefinitions[resource.kind].affects;
}

/** Itself, and not by the EndpointSlices of a Service. */
function choosesPods({ entry, selector }: MeshService): boolean {
  return entry !== undefined && Object.keys(selector).length > 0;
}

/** A pod's status says nothing to the mesh, where its endpoints do. */
function matters({ type, resource, previous }: StoreChange, asksPods: boolean): boolean {
  if (resource.kind !== "Pod" || type !== "modified" || previous === undefined) return true;
  const seen = (pod: MeshResource): string => JSON.stringify([identity(pod), asksPods ? readiness(pod) : ""]);
  return seen(resource) !== seen(previous);
}

function readiness(resource: MeshResource): unknown {
  if (resource.kind !== "Pod") return undefined;
  const { podIP, conditions = [] } = resource.status ?? {};
  return [podIP, conditions.find(({ type }) => type === "Ready")?.status];
}

function identity(resource: MeshResource): unknown {
  const { metadata } = resource;
  return [metadata.labels, metadata.ownerReferences, resource.kind === "Pod" ? resource.spec : ""];
}
