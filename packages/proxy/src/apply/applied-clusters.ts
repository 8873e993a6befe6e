// Puts clusters and endpoints in place as they come from the control plane. A cluster that is accepted warms first: it
// serves once its endpoints (EDS) and secrets have come and its names are resolved (DNS), or the wait is over.
import { type Clock, Pauses } from "@tulle/timing";
import type { AdsResponse, ResourceError, Verdict } from "@tulle/xds";
import type { ClusterLoadAssignment } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";
import type { RuntimeCluster } from "../cluster/runtime-cluster.ts";
import { type CompiledCluster, compileCluster } from "../compile/compile-cluster.ts";
import { compileEndpoints } from "../compile/compile-endpoints.ts";
import { problemsText } from "../fields/problems.ts";
import type { ReceivedResource, ResourceRecord } from "../runtime/config-records.ts";
import { countAccepted } from "../runtime/manager-stats.ts";
import type { SecretSlot } from "../tls/secret-slot.ts";
import type { ConfigTargets } from "./load-static-resources.ts";
import { endpointsPlace, SubscriptionStats } from "./subscription-stats.ts";
import { pending, secretWaits, type Wait, Warming } from "./warming.ts";

type Response<T extends AdsResponse["type"]> = Extract<AdsResponse, { type: T }>;

export interface AppliedClustersOptions extends ConfigTargets {
  readonly clock: Clock;
  readonly initialFetchTimeoutMs: number;
  /** The set of endpoint resources to ask for has changed. */
  readonly onEndpointNames: (names: ReadonlySet<string>) => void;
  /** All secrets that clusters need now. */
  readonly onSecretSlots: (slots: ReadonlySet<SecretSlot>) => void;
  /** Nothing warms any more. */
  readonly onAllWarm: () => void;
}

export class AppliedClusters {
  readonly #options: AppliedClustersOptions;
  readonly #active = new Map<string, CompiledCluster>();
  readonly #warming: Warming<CompiledCluster>;
  readonly #assignments = new Map<string, ClusterLoadAssignment>();
  #endpointNames: ReadonlySet<string> = new Set();
  #hasResponse = false;

  constructor(options: AppliedClustersOptions) {
    this.#options = options;
    this.#warming = new Warming({
      clock: options.clock,
      log: options.scope.logging.logger("config"),
      count: options.owner.clusterStats.warming,
      kind: "cluster",
      onWarm: (name, compiled) => this.#becomeWarm(name, compiled),
    });
  }

  /** The first response has come and nothing warms. */
  get isWarm(): boolean {
    return this.#hasResponse && this.#warming.size === 0;
  }

  async onClusters(response: Response<"CDS">): Promise<Verdict> {
    const { records, scope } = this.#options;
    const log = scope.logging.logger("config");
    const errors: ResourceError[] = [];
    const change = new Map<string, RuntimeCluster | undefined>();
    const pauses = new Pauses();
    for (const [name, message] of response.resources) {
      const record = records.clusters.of(name);
      const contentVersion = response.versions.get(name) ?? "";
      const received = { message, versionInfo: response.versionInfo, receivedAtMs: Date.now(), contentVersion };
      if (record.isStatic) {
        log.warning("a static cluster cannot be replaced", { cluster: name });
        continue;
      }
      const result = compileCluster(message, scope);
      if (!result.ok) {
        const reason = problemsText(result.problems);
        record.refused = { message, versionInfo: response.versionInfo, refusedAtMs: Date.now(), reason };
        errors.push({ name, message: reason });
        continue;
      }
      for (const warning of result.warnings) log.debug(warning.message, { cluster: name, place: warning.place });
      record.refused = undefined;
      this.#accept(record, received, result.value, change);
      await pauses.takeIfDue();
    }
    this.#forgetMetrics(response.removed.flatMap((name) => this.#remove(name, change) ?? []));
    this.#options.owner.swap({ clusters: change });
    if (errors.length === 0) records.clusters.versionInfo = response.versionInfo;
    this.#hasResponse = true;
    log.info("clusters received", {
      resources: response.resources.size,
      changed: change.size,
      warming: this.#warming.size,
      removed: response.removed.length,
      refused: errors.length,
    });
    this.#noteEndpointNames();
    this.#options.onSecretSlots(this.#secretSlots());
    this.#noteWarm();
    return errors;
  }

  onEndpoints(response: Response<"EDS">): Verdict {
    const { records } = this.#options;
    const errors: ResourceError[] = [];
    // Control planes send thousands of assignments for as many clusters in one response.
    const byAssignment = Map.groupBy(this.#all(), ({ endpointsName }) => endpointsName);
    for (const [name, message] of response.resources) {
      const users = byAssignment.get(name) ?? [];
      const reason = this.#takeAssignment(name, message, users);
      const record = records.endpoints.of(name);
      const { versionInfo } = response;
      for (const { cluster } of users) {
        if (reason === undefined) this.#endpointStats(cluster).onSuccess(versionInfo);
        else this.#endpointStats(cluster).onRejected();
      }
      if (reason !== undefined) {
        record.refused = { message, versionInfo, refusedAtMs: Date.now(), reason };
        errors.push({ name, message: reason });
        continue;
      }
      const contentVersion = response.versions.get(name) ?? "";
      record.active = { message, versionInfo, receivedAtMs: Date.now(), contentVersion };
      record.refused = undefined;
    }
    for (const name of response.removed) this.#forgetAssignment(name);
    if (errors.length === 0) records.endpoints.versionInfo = response.versionInfo;
    void this.#warming.check();
    this.#noteWarm();
    return errors;
  }

  /** The stream has ended; it will be opened again. */
  onStreamEnd(): void {
    for (const { endpointsName, cluster } of this.#all()) {
      if (endpointsName !== undefined) this.#endpointStats(cluster).onFailure();
    }
  }

  #endpointStats({ observabilityName }: RuntimeCluster): SubscriptionStats {
    return new SubscriptionStats(this.#options.scope.metrics, endpointsPlace(observabilityName));
  }

  /** These secrets have come. */
  onSecrets(changed: ReadonlySet<SecretSlot>): void {
    for (const { cluster } of this.#all()) for (const { stats } of cluster.tlsTransports) stats.onSecrets(changed);
    void this.#warming.check();
  }

  /** No first response came in time: the start goes on without. */
  giveUpWaiting(): void {
    this.#hasResponse = true;
    this.#noteWarm();
  }

  close(): void {
    for (const { cluster } of this.#warming.compiled()) cluster.stop();
    this.#warming.close();
  }

  /** Puts the accepted version in `change` when it can serve at once, else lets it warm. */
  #accept(
    record: ResourceRecord<ReceivedMessage>,
    received: ReceivedResource<ReceivedMessage>,
    compiled: CompiledCluster,
    change: Map<string, RuntimeCluster | undefined>,
  ): void {
    const { name } = record;
    const isKnown = this.#stopWarming(name) || this.#active.has(name);
    countAccepted(this.#options.owner.clusterStats, isKnown);
    record.warming = received;
    const { cluster, endpointsName } = compiled;
    const assignment = endpointsName === undefined ? undefined : this.#assignments.get(endpointsName);
    if (assignment !== undefined) {
      // Endpoints that are known serve the new version at once; a newer assignment replaces them as usual.
      const endpoints = compileEndpoints(assignment, compiled);
      if (endpoints.ok) cluster.updateEndpoints(endpoints.value);
    }
    const waits = pending([...secretWaits(compiled.secretSlots), ...this.#hostWaits(compiled)]);
    if (waits.length > 0) this.#warming.begin(name, compiled, waits);
    else if (!this.#warmByChecks(name, compiled)) this.#activate(name, compiled, change);
  }

  /**
   * Once all else has come, the hosts are checked for the first time: it warms until then, where it has any to check.
   */
  #warmByChecks(name: string, compiled: CompiledCluster): boolean {
    const { healthChecker } = compiled.cluster;
    if (healthChecker === undefined) return false;
    healthChecker.start(this.#options.owner.healthChecks, () => void this.#warming.check());
    if (healthChecker.isWarm) return false;
    const wait = { what: "first health checks", timeoutMs: 0, isOver: () => healthChecker.isWarm };
    this.#warming.begin(name, compiled, [wait]);
    return true;
  }

  /** What a cluster's hosts come from, begun where that is the cluster's own work. */
  #hostWaits({ cluster, endpointsName, endpointsTimeoutMs }: CompiledCluster): readonly Wait[] {
    if (endpointsName !== undefined) {
      return [
        {
          what: "endpoints",
          timeoutMs: endpointsTimeoutMs,
          isOver: () => this.#assignments.has(endpointsName),
          onTimeout: () => this.#endpointStats(cluster).onTimeout(),
        },
      ];
    }
    if (cluster.type === "static" || cluster.type === "dynamic_forward_proxy") return [];
    const timeoutMs = this.#options.initialFetchTimeoutMs;
    let isResolved = false;
    void cluster.start().then(() => {
      isResolved = true;
      return this.#warming.check();
    });
    return [{ what: "addresses", timeoutMs, isOver: () => isResolved }];
  }

  #becomeWarm(name: string, compiled: CompiledCluster): void {
    if (this.#warmByChecks(name, compiled)) return;
    const change = new Map<string, RuntimeCluster | undefined>();
    this.#activate(name, compiled, change);
    this.#options.owner.swap({ clusters: change });
    this.#noteWarm();
  }

  #activate(name: string, compiled: CompiledCluster, change: Map<string, RuntimeCluster | undefined>): void {
    this.#active.set(name, compiled);
    const record = this.#options.records.clusters.of(name);
    record.active = record.warming;
    record.warming = undefined;
    change.set(name, compiled.cluster);
  }

  /** Whether it did. */
  #stopWarming(name: string): boolean {
    const compiled = this.#warming.stop(name);
    compiled?.cluster.stop();
    return compiled !== undefined;
  }

  /** The cluster that served until now. */
  #remove(name: string, change: Map<string, RuntimeCluster | undefined>): RuntimeCluster | undefined {
    const { records, owner } = this.#options;
    if (records.clusters.get(name)?.isStatic === true) return undefined;
    const wasWarming = this.#stopWarming(name);
    if (this.#active.delete(name) || wasWarming) owner.clusterStats.removed.increment();
    records.clusters.delete(name);
    const cluster = owner.cluster(name);
    if (cluster !== undefined) change.set(name, undefined);
    return cluster;
  }

  /**
   * Counters of clusters that are gone go with them, or a mesh that changes would fill the registry. One look at all
   * series for all of them: a response may remove thousands.
   */
  #forgetMetrics(removed: readonly RuntimeCluster[]): void {
    const gone = new Set(removed.map(({ observabilityName }) => observabilityName));
    for (const { cluster } of this.#active.values()) gone.delete(cluster.observabilityName);
    if (gone.size === 0) return;
    this.#options.scope.metrics.removeSeries((series) => gone.has(series.labels["envoy_cluster_name"] ?? ""));
  }

  /** The reason why the assignment is refused; undefined = it serves. */
  #takeAssignment(name: string, message: ClusterLoadAssignment, users: readonly CompiledCluster[]): string | undefined {
    const checked = compileEndpoints(message);
    if (!checked.ok) return problemsText(checked.problems);
    this.#assignments.set(name, message);
    for (const compiled of users) {
      const endpoints = compileEndpoints(message, compiled);
      if (endpoints.ok) compiled.cluster.updateEndpoints(endpoints.value);
    }
    return undefined;
  }

  /** The time of the endpoints is over: nobody vouches for them any more. */
  #forgetAssignment(name: string): void {
    this.#assignments.delete(name);
    this.#options.records.endpoints.delete(name);
    for (const { endpointsName, cluster } of this.#all()) if (endpointsName === name) cluster.updateEndpoints([]);
  }

  /** Those that serve and those that warm. */
  #all(): readonly CompiledCluster[] {
    return [...this.#active.values(), ...this.#warming.compiled()];
  }

  #secretSlots(): ReadonlySet<SecretSlot> {
    return new Set(this.#all().flatMap(({ secretSlots }) => [...secretSlots]));
  }

  #noteEndpointNames(): void {
    const names = new Set<string>();
    for (const { endpointsName } of this.#all()) if (endpointsName !== undefined) names.add(endpointsName);
    if (names.size === this.#endpointNames.size && names.isSubsetOf(this.#endpointNames)) return;
    for (const { endpointsName, cluster } of this.#all()) {
      if (endpointsName !== undefined && !this.#endpointNames.has(endpointsName))
        this.#endpointStats(cluster).onAttempt();
    }
    this.#endpointNames = names;
    for (const name of this.#assignments.keys()) {
      if (names.has(name)) continue;
      this.#assignments.delete(name);
      this.#options.records.endpoints.delete(name);
    }
    this.#options.onEndpointNames(names);
  }

  #noteWarm(): void {
    if (this.isWarm) this.#options.onAllWarm();
  }
}

type ReceivedMessage = Response<"CDS">["resources"] extends ReadonlyMap<string, infer M> ? M : never;
