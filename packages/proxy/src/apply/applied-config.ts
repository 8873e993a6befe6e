// The configuration of a proxy, as far as it comes over the aggregated stream, put in place in this thread: clusters
// and listeners, each warming until it can serve, and the slots that nothing names any more.
import type { Clock } from "@tulle/timing";
import type { Verdict } from "@tulle/xds";
import type { AppliedSecrets } from "./applied-secrets.ts";
import { AppliedClusters } from "./applied-clusters.ts";
import { AppliedListeners } from "./applied-listeners.ts";
import type { ConfigEvents, ConfigReceiver, ConfigStage, ConfigUpdate } from "./config-update.ts";
import type { ConfigTargets } from "./load-static-resources.ts";

export interface AppliedConfigOptions extends ConfigTargets {
  readonly clock: Clock;
  /** initial_fetch_timeout of the clusters' source; 0 = for ever. */
  readonly clustersTimeoutMs: number;
  /** Ports whose socket the parent has bound for us. */
  readonly isInheritedPort: (port: number) => boolean;
  readonly secrets: Pick<AppliedSecrets, "need" | "onChange">;
  readonly events: ConfigEvents;
}

export class AppliedConfig implements ConfigReceiver {
  readonly #targets: ConfigTargets;
  readonly #clusters: AppliedClusters;
  readonly #listeners: AppliedListeners;

  constructor(options: AppliedConfigOptions) {
    const { clock, clustersTimeoutMs, isInheritedPort, secrets, events, scope, owner, records } = options;
    this.#targets = { scope, owner, records };
    const shared = { ...this.#targets, clock };
    this.#clusters = new AppliedClusters({
      ...shared,
      initialFetchTimeoutMs: clustersTimeoutMs,
      onEndpointNames: (names) => events.onNeeds("EDS", names),
      onSecretSlots: (slots) => secrets.need("clusters", slots),
      onAllWarm: () => events.onWarm("clusters"),
    });
    this.#listeners = new AppliedListeners({
      ...shared,
      isInheritedPort,
      onRouteNames: (names) => events.onNeeds("RDS", names),
      onSecretSlots: (slots) => secrets.need("listeners", slots),
      onAllWarm: () => events.onWarm("listeners"),
    });
    secrets.onChange((changed) => {
      this.#clusters.onSecrets(changed);
      this.#listeners.onSecrets(changed);
    });
  }

  async apply(update: ConfigUpdate): Promise<Verdict> {
    const verdict = await this.#take(update);
    this.#pruneSlots();
    return verdict;
  }

  #take(update: ConfigUpdate): Verdict | Promise<Verdict> {
    switch (update.type) {
      case "CDS":
        return this.#clusters.onClusters(update);
      case "EDS":
        return this.#clusters.onEndpoints(update);
      case "LDS":
        return this.#listeners.onListeners(update);
      case "RDS":
        return this.#listeners.onRoutes(update);
    }
  }

  /** Endpoints are taken each time: what they are for may have come anew. */
  holds(type: ConfigUpdate["type"], name: string, contentVersion: string): boolean {
    const { clusters, listeners, routes } = this.#targets.records;
    switch (type) {
      case "CDS":
        return clusters.holds(name, contentVersion);
      case "LDS":
        return listeners.holds(name, contentVersion);
      case "RDS":
        return routes.holds(name, contentVersion);
      case "EDS":
        return false;
    }
  }

  giveUpWaiting(stage: ConfigStage): void {
    if (stage === "clusters") this.#clusters.giveUpWaiting();
    else this.#listeners.giveUpWaiting();
  }

  onStreamEnd(): void {
    this.#clusters.onStreamEnd();
    this.#listeners.onStreamEnd();
  }

  close(): void {
    this.#clusters.close();
    this.#listeners.close();
  }

  /** Names that came and went in route tables would otherwise leave an empty slot each. */
  #pruneSlots(): void {
    const { owner } = this.#targets;
    const inline = this.#listeners.clusterNames();
    const tables = [...owner.routeTableSlots.values()].map((slot) => slot.current);
    owner.clusterSlots.prune(
      (name) =>
        owner.staticClusterNames.has(name) ||
        inline.has(name) ||
        tables.some((table) => table?.clusterNames.has(name) === true),
    );
  }
}
