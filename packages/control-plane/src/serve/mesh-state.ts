// The newest picture of the mesh: watches the store, gathers changes, and builds the part of the picture that they
// touch.
import type { Clock } from "@tulle/timing";
import { kindDefinitions, type MeshResource, type Store, type StoreChange } from "@tulle/config";
import { buildEndpoints } from "../snapshot/build-endpoints.ts";
import { buildSnapshot } from "../snapshot/build-snapshot.ts";
import type { ResourceReader } from "../snapshot/resource-reader.ts";
import type { EndpointSnapshot, MeshSnapshot, TlsVersion } from "../snapshot/mesh-snapshot.ts";
import { sameWorkloads, serviceWorkloads, type ServiceWorkloads } from "../snapshot/service-workloads.ts";
import type { LoginProviders } from "../login-providers/login-providers.ts";
import type { JwksKeys } from "../jwks/jwks-keys.ts";
import { Debounce, type DebounceTimes } from "./debounce.ts";

export interface MeshChange {
  /** Services, routes or rules have changed: views are made anew. */
  readonly routing: boolean;
  /** Endpoints may have changed; with neither of the two, Secrets alone have. */
  readonly endpoints: boolean;
  /** When the first of the changes arrived, in milliseconds of the clock. */
  readonly sinceMs: number;
}

export interface MeshStateOptions {
  readonly store: Store;
  /** What is routed by: the store, or the store without what was set aside. */
  readonly reader: ResourceReader & { refresh(): void };
  readonly clock: Clock;
  readonly debounce: DebounceTimes;
  /** Fetches the keys of token issuers; none are when missing. */
  readonly jwks?: Pick<JwksKeys, "keys" | "want" | "follow">;
  readonly logins?: Pick<LoginProviders, "endpoints" | "want" | "follow">;
  /** Of the authority whose certificates the workloads have; nothing is encrypted when missing. */
  readonly trustDomain?: string | undefined;
  /** See `MeshSnapshot.minimumTls`. */
  readonly minimumTls?: TlsVersion | undefined;
}

export class MeshState {
  readonly #options: MeshStateOptions;
  readonly #debounce: Debounce;
  readonly #unwatch: () => void;
  #snapshot: MeshSnapshot;
  #endpoints: EndpointSnapshot;
  #workloads: ServiceWorkloads = new Map();
  readonly #listeners: ((change: MeshChange) => void)[] = [];
  #pending: { routing: boolean; endpoints: boolean; sinceMs: number } | undefined;

  constructor(options: MeshStateOptions) {
    this.#options = options;
    options.reader.refresh();
    this.#refreshWorkloads();
    this.#snapshot = this.#buildSnapshot();
    this.#endpoints = buildEndpoints(options.reader, this.#snapshot);
    this.#debounce = new Debounce(options.debounce, options.clock, () => this.#rebuild());
    this.#unwatch = options.store.watch((changes) => this.#changed(changes));
    // Keys and endpoints of issuers come and go: listeners are made anew with what is there then.
    for (const source of [options.jwks, options.logins]) source?.follow(() => this.#request(true, true));
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
    const { reader, jwks, logins, trustDomain, minimumTls } = this.#options;
    const options = {
      fetchedKeys: jwks?.keys,
      discoveredEndpoints: logins?.endpoints,
      trustDomain,
      minimumTls,
      workloads: this.#workloads,
    };
    const snapshot = buildSnapshot(reader, options);
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
    const touched = new Set(changes.filter(matters).map(({ resource }) => kindDefinitions[resource.kind].affects));
    const [routing, endpoints, secrets] = [touched.has("routing"), touched.has("endpoints"), touched.has("secrets")];
    if (routing || endpoints || secrets) this.#request(routing, endpoints);
  }

  #request(routing: boolean, endpoints: boolean): void {
    this.#pending ??= { routing: false, endpoints: false, sinceMs: this.#options.clock.nowMs() };
    this.#pending.routing ||= routing;
    this.#pending.endpoints ||= endpoints;
    this.#debounce.signal();
  }

  #rebuild(): void {
    const change = this.#pending;
    if (change === undefined) return;
    this.#pending = undefined;
    const { reader } = this.#options;
    // Callers accept the identities behind a Service, and speak as all there do: a new one changes clusters, before its
    // first endpoint is sent.
    if (this.#refreshWorkloads()) change.routing = true;
    if (change.routing) {
      reader.refresh();
      this.#snapshot = this.#buildSnapshot();
    }
    if (change.routing || change.endpoints) this.#endpoints = buildEndpoints(reader, this.#snapshot);
    for (const listener of this.#listeners) listener(change);
  }
}

/** A pod's status says nothing to the mesh: its endpoints do. */
function matters({ type, resource, previous }: StoreChange): boolean {
  if (resource.kind !== "Pod" || type !== "modified" || previous === undefined) return true;
  return JSON.stringify(identity(resource)) !== JSON.stringify(identity(previous));
}

function identity(resource: MeshResource): unknown {
  const { metadata } = resource;
  return [metadata.labels, metadata.ownerReferences, resource.kind === "Pod" ? resource.spec : ""];
}
