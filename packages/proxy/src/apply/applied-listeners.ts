// Puts listeners and routes in place as they come from the control plane. A listener that is accepted warms until its
// route configurations and secrets have come, so that it never answers 404 for want of them; the version before it
// serves meanwhile.
import { createServer } from "node:net";
import { type Clock, Pauses } from "@tulle/timing";
import type { AdsResponse, ResourceError, Verdict } from "@tulle/xds";
import { type CompiledListener, compileListener } from "../listener/compile-listener.ts";
import type { RouteSubscription } from "../listener/listener-build.ts";
import { compileEncodedRoutes } from "../compile/compile-route-configuration.ts";
import { problemsText } from "../fields/problems.ts";
import type { RouteTable } from "../route/route-table.ts";
import { type ListenAddress, tlsTransports } from "../listener/listener.ts";
import { listenOptions } from "../listener/listener-host.ts";
import { countAccepted } from "../runtime/manager-stats.ts";
import type { SecretSlot } from "../tls/secret-slot.ts";
import type { ConfigTargets } from "./load-static-resources.ts";
import { routesPlace, SubscriptionStats } from "./subscription-stats.ts";
import { pending, secretWaits, type Wait, Warming } from "./warming.ts";

type Response<T extends AdsResponse["type"]> = Extract<AdsResponse, { type: T }>;

export interface AppliedListenersOptions extends ConfigTargets {
  readonly clock: Clock;
  /** Ports whose socket the parent has bound for us: they cannot be tried. */
  readonly isInheritedPort: (port: number) => boolean;
  /** The set of route configurations to ask for has changed. */
  readonly onRouteNames: (names: ReadonlySet<string>) => void;
  /** All secrets that listeners need now. */
  readonly onSecretSlots: (slots: ReadonlySet<SecretSlot>) => void;
  readonly onAllWarm: () => void;
}

export class AppliedListeners {
  readonly #options: AppliedListenersOptions;
  readonly #active = new Map<string, CompiledListener>();
  readonly #warming: Warming<CompiledListener>;
  #routes: ReadonlyMap<string, RouteSubscription> = new Map();
  /** Listeners whose addresses are being bound. */
  #activating = 0;
  #hasResponse = false;

  constructor(options: AppliedListenersOptions) {
    this.#options = options;
    this.#warming = new Warming({
      clock: options.clock,
      log: options.scope.logging.logger("config"),
      count: options.owner.listenerStats.warming,
      kind: "listener",
      onWarm: (name, compiled) => this.#becomeWarm(name, compiled),
    });
  }

  get isWarm(): boolean {
    return this.#hasResponse && this.#warming.size === 0 && this.#activating === 0;
  }

  async onListeners(response: Response<"LDS">): Promise<Verdict> {
    const { records, scope, owner } = this.#options;
    const log = scope.logging.logger("config");
    const errors: ResourceError[] = [];
    const pauses = new Pauses();
    // First what goes, so that a listener may take over the address of one that this response leaves out.
    for (const name of response.removed) this.#remove(name);
    for (const [name, message] of response.resources) {
      const record = records.listeners.of(name);
      const contentVersion = response.versions.get(name) ?? "";
      if (record.isStatic) {
        log.warning("a static listener cannot be replaced", { listener: name });
        continue;
      }
      const { versionInfo } = response;
      const options = {
        clusterExists: (cluster: string): boolean => owner.cluster(cluster) !== undefined,
        former: this.#active.get(name)?.chains,
      };
      const result = compileListener(message, scope, options);
      if (!result.ok) {
        const reason = problemsText(result.problems);
        record.refused = { message, versionInfo, refusedAtMs: Date.now(), reason };
        errors.push({ name, message: reason });
        continue;
      }
      for (const warning of result.warnings) log.warning(warning.message, { listener: name, place: warning.place });
      record.warming = { message, versionInfo, receivedAtMs: Date.now(), contentVersion };
      const reason = await this.#accept(name, result.value);
      if (reason === undefined) {
        record.refused = undefined;
      } else {
        record.warming = undefined;
        record.refused = { message, versionInfo, refusedAtMs: Date.now(), reason };
        errors.push({ name, message: reason });
      }
      await pauses.takeIfDue();
    }
    if (errors.length === 0) records.listeners.versionInfo = response.versionInfo;
    this.#hasResponse = true;
    log.info("listeners received", {
      resources: response.resources.size,
      warming: this.#warming.size,
      removed: response.removed.length,
      refused: errors.length,
    });
    this.#noteRouteNames();
    this.#options.onSecretSlots(new Set(this.#all().flatMap(({ secretSlots }) => [...secretSlots])));
    this.#noteWarm();
    return errors;
  }

  async onRoutes(response: Response<"RDS">): Promise<Verdict> {
    const { records, scope, owner } = this.#options;
    const log = scope.logging.logger("config");
    const errors: ResourceError[] = [];
    const tables = new Map<string, RouteTable | undefined>();
    const clusterExists = (cluster: string): boolean => owner.cluster(cluster) !== undefined;
    for (const [name, bytes] of response.resources) {
      if (!this.#routes.has(name)) continue;
      const record = records.routes.of(name);
      const contentVersion = response.versions.get(name) ?? "";
      const previous = owner.current.routeTables.get(name)?.current;
      const result = await compileEncodedRoutes(bytes, scope, { clusterExists, previous });
      const { versionInfo } = response;
      if (!result.ok) {
        const reason = problemsText(result.problems);
        record.refused = { message: bytes, versionInfo, refusedAtMs: Date.now(), reason };
        this.#routeStats(name)?.onRejected();
        errors.push({ name, message: reason });
        continue;
      }
      for (const warning of result.warnings) log.debug(warning.message, { route: name, place: warning.place });
      record.active = { message: bytes, versionInfo, receivedAtMs: Date.now(), contentVersion };
      record.refused = undefined;
      tables.set(name, result.value);
      this.#routeStats(name)?.onSuccess(versionInfo);
    }
    for (const name of response.removed) {
      records.routes.delete(name);
      tables.set(name, undefined);
    }
    owner.swap({ routeTables: tables });
    if (errors.length === 0) records.routes.versionInfo = response.versionInfo;
    log.debug("routes received", { resources: response.resources.size, refused: errors.length });
    await this.#warming.check();
    this.#noteWarm();
    return errors;
  }

  /** These secrets have come. */
  onSecrets(changed: ReadonlySet<SecretSlot>): void {
    for (const { listener } of this.#all()) for (const { stats } of tlsTransports(listener)) stats.onSecrets(changed);
    void this.#warming.check();
  }

  giveUpWaiting(): void {
    this.#hasResponse = true;
    this.#noteWarm();
  }

  close(): void {
    this.#warming.close();
  }

  #waits({ routes, secretSlots }: CompiledListener): readonly Wait[] {
    const { owner } = this.#options;
    const ofRoutes = [...routes].map(([name, { timeoutMs }]) => ({
      what: `the routes '${name}'`,
      timeoutMs,
      isOver: () => owner.current.routeTables.has(name),
      onTimeout: () => this.#routeStats(name)?.onTimeout(),
    }));
    return [...secretWaits(secretSlots), ...ofRoutes];
  }

  /** The stream has ended; it will be opened again. */
  onStreamEnd(): void {
    for (const name of this.#routes.keys()) this.#routeStats(name)?.onFailure();
  }

  #routeStats(name: string): SubscriptionStats | undefined {
    const subscription = this.#routes.get(name);
    if (subscription === undefined) return undefined;
    return new SubscriptionStats(this.#options.scope.metrics, routesPlace(subscription.statPrefix, name));
  }

  /** The reason why its addresses cannot be bound; undefined = it serves, or will when it is warm. */
  async #accept(name: string, compiled: CompiledListener): Promise<string | undefined> {
    const { listenerStats } = this.#options.owner;
    const wasWarming = this.#warming.stop(name) !== undefined;
    const isKnown = this.#active.has(name) || wasWarming;
    if (pending(this.#waits(compiled)).length === 0) {
      const reason = await this.#activate(name, compiled);
      if (reason === undefined) countAccepted(listenerStats, isKnown);
      return reason;
    }
    const reason = await this.#tryToBind(name, compiled);
    if (reason !== undefined) {
      listenerStats.failed.increment();
      return reason;
    }
    countAccepted(listenerStats, isKnown);
    this.#warming.begin(name, compiled, this.#waits(compiled));
    // Something may have come while the address was tried.
    await this.#warming.check();
    return undefined;
  }

  /** A warming listener must not accept yet, but an address in use is to be told while the response can be refused. */
  async #tryToBind(name: string, { listener }: CompiledListener): Promise<string | undefined> {
    if (!listener.bindToPort) return undefined;
    const own = this.#options.owner.current.listeners.get(name)?.addresses ?? [];
    for (const address of listener.addresses) {
      if (own.some((bound) => bound.ip === address.ip && bound.port === address.port)) continue;
      if (this.#options.isInheritedPort(address.port)) continue;
      const reason = await probe(address);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  async #becomeWarm(name: string, compiled: CompiledListener): Promise<void> {
    const reason = await this.#activate(name, compiled);
    this.#noteWarm();
    if (reason === undefined) return;
    const { records, scope } = this.#options;
    const record = records.listeners.get(name);
    // It was removed meanwhile.
    if (record === undefined) return;
    const failed = record.warming;
    record.warming = undefined;
    record.refused = {
      message: failed?.message,
      versionInfo: failed?.versionInfo ?? "",
      refusedAtMs: Date.now(),
      reason,
    };
    scope.logging.logger("config").error("a listener cannot be bound", { listener: name, reason });
  }

  async #activate(name: string, compiled: CompiledListener): Promise<string | undefined> {
    const record = this.#options.records.listeners.of(name);
    const received = record.warming;
    const before = this.#active.get(name);
    // What it needs must not be forgotten while its addresses are bound.
    this.#active.set(name, compiled);
    this.#activating += 1;
    const reason = await this.#options.owner.applyListener(compiled.listener);
    this.#activating -= 1;
    // Removed, or replaced once more.
    if (this.#active.get(name) !== compiled) return reason;
    if (reason !== undefined) {
      if (before === undefined) this.#active.delete(name);
      else this.#active.set(name, before);
      return reason;
    }
    record.active = received;
    if (record.warming === received) record.warming = undefined;
    return undefined;
  }

  #remove(name: string): void {
    const { records, owner } = this.#options;
    if (records.listeners.get(name)?.isStatic === true) return;
    const wasWarming = this.#warming.stop(name) !== undefined;
    if (this.#active.delete(name) || wasWarming) owner.listenerStats.removed.increment();
    records.listeners.delete(name);
    owner.removeListener(name);
  }

  #noteRouteNames(): void {
    const { records, owner, scope } = this.#options;
    const wanted = new Map<string, RouteSubscription>();
    for (const { routes } of this.#all()) for (const [name, subscription] of routes) wanted.set(name, subscription);
    const names = new Set(wanted.keys());
    const before = new Set(this.#routes.keys());
    this.#routes = wanted;
    if (names.size === before.size && names.isSubsetOf(before)) return;
    for (const name of names.difference(before)) this.#routeStats(name)?.onAttempt();
    const gone = [...before].filter((name) => !names.has(name));
    for (const name of gone) records.routes.delete(name);
    scope.metrics.removeSeries(({ labels }) => gone.includes(labels["envoy_rds_route_config"] ?? ""));
    owner.swap({ routeTables: new Map(gone.map((name) => [name, undefined])) });
    this.#options.onRouteNames(names);
  }

  /** Clusters that listeners with inline routes may choose. */
  clusterNames(): ReadonlySet<string> {
    const names = new Set<string>();
    for (const { clusterNames } of this.#all()) for (const name of clusterNames) names.add(name);
    return names;
  }

  /** Those that serve and those that warm. */
  #all(): readonly CompiledListener[] {
    return [...this.#active.values(), ...this.#warming.compiled()];
  }

  #noteWarm(): void {
    if (this.isWarm) this.#options.onAllWarm();
  }
}

/** Binds and lets go at once; the reason when that fails. */
function probe(address: ListenAddress): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      const words = error.code === "EADDRINUSE" ? "Address already in use" : error.message;
      resolve(`cannot bind '${address.ip}:${address.port}': ${words}`);
    });
    server.listen(listenOptions(address), () => {
      server.close(() => resolve(undefined));
    });
  });
}
