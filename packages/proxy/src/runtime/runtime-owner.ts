// Owns the proxy's runtime: the slots that routes and listeners hold, the sockets behind the listeners, and the one
// synchronous step in which a new runtime takes the place of the old one.
import type { Gauge, MetricRegistry } from "@tulle/telemetry";
import type { Cluster } from "../cluster/cluster.ts";
import type { RuntimeCluster } from "../cluster/runtime-cluster.ts";
import type { OfProcess, OfWorker } from "../worker/ownership.ts";
import type { CheckQueue } from "../cluster/health-check/check-queue.ts";
import { SlotTable } from "./slot.ts";
import type { ListenerHost } from "../listener/listener-host.ts";
import type { RouteTable } from "../route/route-table.ts";
import { SecretSlotTable } from "../tls/secret-slot.ts";
import type { Listener } from "../listener/listener.ts";
import type { ProxyRuntime } from "./proxy-runtime.ts";
import type { Slot } from "./slot.ts";
import {
  type ClusterManagerStats,
  type ListenerManagerStats,
  makeClusterManagerStats,
  makeListenerManagerStats,
} from "./manager-stats.ts";
import { sameAddresses } from "./same-addresses.ts";
import { systemClock } from "../worker/clock.ts";

/** What changes, by name; undefined = removed. What is not named stays as it is. */
export interface RuntimeChange {
  readonly clusters?: ReadonlyMap<string, RuntimeCluster | undefined>;
  readonly routeTables?: ReadonlyMap<string, RouteTable | undefined>;
}

export interface RuntimeOwnerOptions {
  readonly listenerHost: ListenerHost;
  readonly healthChecks: OfProcess<CheckQueue>;
  /** How long connections of a listener that was removed may go on (Envoy: --drain-time-s, 600 s). */
  readonly drainTimeMs: number;
  readonly metrics: MetricRegistry;
}

export class RuntimeOwner {
  readonly clusterSlots: OfWorker<SlotTable<Cluster>> = new SlotTable();
  readonly routeTableSlots: OfWorker<SlotTable<RouteTable>> = new SlotTable();
  readonly secretSlots: OfWorker<SecretSlotTable> = new SecretSlotTable();
  /** Clusters that static listeners may choose, whether they exist yet or not. */
  readonly staticClusterNames = new Set<string>();
  /** Of all clusters. */
  readonly healthChecks: OfProcess<CheckQueue>;
  readonly clusterStats: OfProcess<ClusterManagerStats>;
  readonly listenerStats: OfProcess<ListenerManagerStats>;
  readonly #listenerHost: ListenerHost;
  readonly #drainTimeMs: number;
  readonly #clusters = new Map<string, RuntimeCluster>();
  #current: ProxyRuntime = { listeners: new Map(), clusters: new Map(), routeTables: new Map() };

  constructor(options: RuntimeOwnerOptions) {
    this.#listenerHost = options.listenerHost;
    this.healthChecks = options.healthChecks;
    this.#drainTimeMs = options.drainTimeMs;
    this.clusterStats = makeClusterManagerStats(options.metrics);
    this.listenerStats = makeListenerManagerStats(options.metrics);
  }

  get current(): ProxyRuntime {
    return this.#current;
  }

  cluster(name: string): RuntimeCluster | undefined {
    return this.#clusters.get(name);
  }

  clusters(): IterableIterator<RuntimeCluster> {
    return this.#clusters.values();
  }

  isOwnListener(ip: string, port: number): boolean {
    return this.#listenerHost.isListeningAt(ip, port);
  }

  /**
   * Puts the change in place in one synchronous step: a request sees all of it or nothing. Requests that have chosen
   * their cluster or route finish on what they chose; clusters that are gone drain.
   */
  swap(change: RuntimeChange): ProxyRuntime {
    const replaced: RuntimeCluster[] = [];
    const clusters = new Map(this.#current.clusters);
    for (const [name, next] of change.clusters ?? []) {
      const old = this.#clusters.get(name);
      if (old !== undefined && old !== next) {
        replaced.push(old);
        next?.succeed(old);
      }
      put(clusters, this.clusterSlots.get(name), next);
      if (next === undefined) this.#clusters.delete(name);
      else this.#clusters.set(name, next);
    }
    this.clusterStats.active.set(this.#clusters.size);
    const routeTables = new Map(this.#current.routeTables);
    for (const [name, next] of change.routeTables ?? []) put(routeTables, this.routeTableSlots.get(name), next);
    this.#current = { listeners: this.#current.listeners, clusters, routeTables };
    for (const cluster of replaced) cluster.stop();
    return this.#current;
  }

  /**
   * Binds the listener's addresses, or hands its new filter chains to the sockets that it has. Resolves to the reason
   * when they cannot be bound; what served before goes on then.
   */
  async applyListener(listener: Listener): Promise<string | undefined> {
    const reason = await this.#listenerHost.apply(listener);
    if (reason !== undefined) {
      this.listenerStats.failed.increment();
      return reason;
    }
    this.listenerStats.created.increment();
    const former = this.#current.listeners.get(listener.name);
    if (former !== undefined) this.#countReplaced(former, listener);
    this.#setListeners(new Map(this.#current.listeners).set(listener.name, listener));
    return undefined;
  }

  removeListener(name: string): void {
    // It may be on its way: its addresses are bound then, and let go of.
    this.#listenerHost.remove(name, this.#drainTimeMs);
    if (!this.#current.listeners.has(name)) return;
    this.#countDraining(this.listenerStats.draining, 1);
    const listeners = new Map(this.#current.listeners);
    listeners.delete(name);
    this.#setListeners(listeners);
  }

  #setListeners(listeners: ProxyRuntime["listeners"]): void {
    this.#current = { ...this.#current, listeners };
    this.listenerStats.active.set(listeners.size);
  }

  #countReplaced(former: Listener, listener: Listener): void {
    const { draining, drainingChains, updatedInPlace } = this.listenerStats;
    if (!sameAddresses(former, listener)) return this.#countDraining(draining, 1);
    updatedInPlace.increment();
    const kept = new Set(listener.filterChains);
    this.#countDraining(drainingChains, former.filterChains.filter((chain) => !kept.has(chain)).length);
  }

  /** For all of the time that connections may go on, whether there are any or not, as Envoy counts it. */
  #countDraining(gauge: Gauge, count: number): void {
    gauge.add(count);
    systemClock.setTimer(() => gauge.add(-count), this.#drainTimeMs);
  }

  /** Closes sockets and connections at once. */
  async stopListeners(): Promise<void> {
    await this.#listenerHost.stop();
    this.listenerStats.stopped.add(this.#current.listeners.size);
  }

  /** Ends what clusters do by themselves (DNS) and drains their connections. */
  stopClusters(): void {
    for (const cluster of this.#clusters.values()) cluster.stop();
  }
}

function put<T>(map: Map<string, Slot<T>>, slot: Slot<T>, next: T | undefined): void {
  slot.current = next;
  if (next === undefined) map.delete(slot.name);
  else map.set(slot.name, slot);
}
