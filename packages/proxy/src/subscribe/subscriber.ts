// The proxy's side of the aggregated stream: subscribes in Envoy's order (clusters, their endpoints, then listeners, their
// routes), hands each response to the part that knows its type, and says when the start is complete.
import { type AdsClient, type AdsClientState, type Clock, type Verdict, connectAds, systemClock } from "@tulle/xds";
import { clone, create } from "@bufbuild/protobuf";
import { RepeatedWarning } from "@tulle/telemetry";
import { type Node, NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { AdsResponse, ResourceTypeName } from "@tulle/xds";
import type { ProxyBootstrap } from "../bootstrap/compile-bootstrap.ts";
import { productVersion } from "../runtime/product-version.ts";
import { ClusterSubscription } from "./cluster-subscription.ts";
import { ListenerSubscription } from "./listener-subscription.ts";
import type { ConfigTargets } from "./load-static-resources.ts";
import type { OpenStream } from "./open-stream.ts";
import { clustersPlace, ControlPlaneStats, listenersPlace, SubscriptionStats } from "./subscription-stats.ts";
import type { SecretSubscription } from "./secret-subscription.ts";

export interface SubscriberOptions {
  readonly clock?: Clock;
  /** Ports whose socket the parent has bound for us. */
  readonly isInheritedPort?: (port: number) => boolean;
  /** Clusters serve; listeners are awaited now. */
  readonly onClustersWarm?: () => void;
  /** In the place of `connectAds`, for tests. */
  readonly connect?: typeof connectAds;
}

export interface Subscriber {
  /** Resolves once clusters and listeners have come and are warm, or were waited for long enough. */
  readonly ready: Promise<void>;
  readonly state: AdsClientState | undefined;
  close(): void;
}

export function startSubscriber(
  bootstrap: ProxyBootstrap,
  targets: ConfigTargets,
  secrets: SecretSubscription,
  openStream: OpenStream,
  options: SubscriberOptions = {},
): Subscriber {
  if (bootstrap.dynamic === undefined) return { ready: Promise.resolve(), state: undefined, close: () => {} };
  return new AdsSubscriber(bootstrap, targets, secrets, openStream, options);
}

/**
 * States: clusters (asked for clusters, waiting until they are warm) → listeners (asked for listeners too, waiting
 * likewise) → ready, in which updates go on for ever.
 */
class AdsSubscriber implements Subscriber {
  readonly ready: Promise<void>;
  readonly #client: AdsClient;
  readonly #clusters: ClusterSubscription;
  readonly #listeners: ListenerSubscription;
  readonly #dynamic: NonNullable<ProxyBootstrap["dynamic"]>;
  readonly #clock: Clock;
  readonly #targets: ConfigTargets;
  readonly #secrets: SecretSubscription;
  readonly #clusterStats: SubscriptionStats;
  readonly #listenerStats: SubscriptionStats;
  readonly #controlPlane: ControlPlaneStats;
  readonly #streamWarning: RepeatedWarning;
  /** Types of which a response has come. */
  readonly #heard = new Set<ResourceTypeName>();
  readonly #markReady: () => void;
  readonly #onClustersWarm: () => void;
  #phase: "clusters" | "listeners" | "ready" = "clusters";
  #cancelTimeout: () => void = () => {};

  constructor(
    bootstrap: ProxyBootstrap,
    targets: ConfigTargets,
    secrets: SecretSubscription,
    openStream: OpenStream,
    options: SubscriberOptions,
  ) {
    const dynamic = bootstrap.dynamic!;
    this.#dynamic = dynamic;
    this.#targets = targets;
    this.#secrets = secrets;
    this.#clock = options.clock ?? systemClock;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ready = promise;
    this.#markReady = resolve;
    this.#onClustersWarm = options.onClustersWarm ?? ((): void => {});
    const log = targets.scope.logging.logger("config");
    this.#streamWarning = new RepeatedWarning(log, () => this.#clock.nowMs());
    const { metrics } = targets.scope;
    this.#clusterStats = new SubscriptionStats(metrics, clustersPlace).show();
    this.#listenerStats = new SubscriptionStats(metrics, listenersPlace).show();
    this.#controlPlane = new ControlPlaneStats(metrics);
    const shared = { ...targets, clock: this.#clock };
    this.#clusters = new ClusterSubscription({
      ...shared,
      initialFetchTimeoutMs: dynamic.clustersTimeoutMs,
      onEndpointNames: (names) => this.#client.subscribe("EDS", names),
      onSecretSlots: (slots) => secrets.need("clusters", slots),
      onAllWarm: () => this.#clustersAreWarm(),
    });
    this.#listeners = new ListenerSubscription({
      ...shared,
      isInheritedPort: options.isInheritedPort ?? ((): boolean => false),
      onRouteNames: (names) => this.#client.subscribe("RDS", names),
      onSecretSlots: (slots) => secrets.need("listeners", slots),
      onAllWarm: () => this.#listenersAreWarm(),
    });
    this.#client = (options.connect ?? connectAds)({
      target: openStream(dynamic.target, "ads"),
      rateLimit: dynamic.rateLimit,
      node: withUserAgent(bootstrap.node),
      handlers: {
        onResponse: (response) => this.#onResponse(response),
        onPending: (pending, isHeldBack) => this.#controlPlane.onPending(pending, isHeldBack),
        holds: (type, name, version) => this.#holds(type, name, version),
        onState: (state) => {
          this.#controlPlane.onConnected(state.kind === "streaming");
          if (state.kind === "waiting") this.#streamEnded(state.reason);
          else log.debug("the xDS stream", { state: state.kind });
        },
      },
    });
    secrets.onChange(() => {
      this.#clusters.onSecret();
      this.#listeners.onSecret();
    });
    secrets.subscribeAggregated = (names) => this.#client.subscribe("SDS", names);
    if (dynamic.subscribesClusters) {
      this.#client.subscribe("CDS", "*");
      this.#clusterStats.onAttempt();
      this.#waitFor(dynamic.clustersTimeoutMs, this.#clusterStats, () => this.#clusters.giveUpWaiting());
    } else {
      this.#clusters.giveUpWaiting();
    }
  }

  get state(): AdsClientState {
    return this.#client.state;
  }

  close(): void {
    this.#cancelTimeout();
    this.#clusters.close();
    this.#listeners.close();
    this.#client.close();
  }

  /** Endpoints and secrets are taken each time: what they are for may have come anew. */
  #holds(type: ResourceTypeName, name: string, version: string): boolean {
    const { clusters, listeners, routes } = this.#targets.records;
    switch (type) {
      case "CDS":
        return clusters.holds(name, version);
      case "LDS":
        return listeners.holds(name, version);
      case "RDS":
        return routes.holds(name, version);
      default:
        return false;
    }
  }

  async #onResponse(response: AdsResponse): Promise<Verdict> {
    const verdict = await this.#take(response);
    this.#count(response, verdict);
    this.#pruneSlots();
    return verdict;
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

  #take(response: AdsResponse): Verdict | Promise<Verdict> {
    switch (response.type) {
      case "CDS":
        return this.#clusters.onClusters(response);
      case "EDS":
        return this.#clusters.onEndpoints(response);
      case "LDS":
        return this.#listeners.onListeners(response);
      case "RDS":
        return this.#listeners.onRoutes(response);
      case "SDS":
        return this.#secrets.onSecrets(response, { kind: "ads" });
      case "ECDS":
        return [...response.resources.keys()].map((name) => ({ name, message: "this type is not subscribed to" }));
    }
  }

  /** 0 = for ever. */
  #waitFor(timeoutMs: number, stats: SubscriptionStats, giveUp: () => void): void {
    this.#cancelTimeout();
    if (timeoutMs === 0) return;
    const heard = this.#heard.size;
    this.#cancelTimeout = this.#clock.after(timeoutMs, () => {
      // What has come may warm yet.
      if (this.#heard.size === heard) stats.onTimeout();
      giveUp();
    });
  }

  #streamEnded(reason: string): void {
    this.#streamWarning.tell("the xDS stream ended", { reason });
    if (this.#dynamic.subscribesClusters) this.#clusterStats.onFailure();
    if (this.#dynamic.subscribesListeners && this.#phase !== "clusters") this.#listenerStats.onFailure();
    this.#clusters.onStreamEnd();
    this.#listeners.onStreamEnd();
  }

  /** Of a response that was looked at, good or not. */
  #count(response: AdsResponse, verdict: Verdict): void {
    if (response.controlPlaneId !== "") this.#controlPlane.onIdentifier(response.controlPlaneId);
    if (response.type !== "CDS" && response.type !== "LDS") return;
    // A time to live that is over is no response.
    if (response.nonce === "" && response.resources.size === 0 && response.removed.length > 0) return;
    this.#heard.add(response.type);
    const stats = response.type === "CDS" ? this.#clusterStats : this.#listenerStats;
    if (response.errors.length + verdict.length === 0) stats.onSuccess(response.versionInfo);
    else stats.onRejected();
  }

  #clustersAreWarm(): void {
    if (this.#phase !== "clusters") return;
    this.#phase = "listeners";
    this.#onClustersWarm();
    if (this.#dynamic.subscribesListeners) {
      this.#client.subscribe("LDS", "*");
      this.#listenerStats.onAttempt();
      this.#waitFor(this.#dynamic.listenersTimeoutMs, this.#listenerStats, () => this.#listeners.giveUpWaiting());
    } else {
      this.#listenersAreWarm();
    }
  }

  #listenersAreWarm(): void {
    if (this.#phase !== "listeners") return;
    this.#phase = "ready";
    this.#cancelTimeout();
    this.#markReady();
  }
}

/** Tells the control plane which program this is, as Envoy's own node does. */
export function withUserAgent(node: Node | undefined): Node {
  const named = node === undefined ? create(NodeSchema) : clone(NodeSchema, node);
  named.userAgentName = "tulle";
  named.userAgentVersionType = { case: "userAgentVersion", value: productVersion };
  return named;
}
