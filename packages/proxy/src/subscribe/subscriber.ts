// The proxy's side of the aggregated stream: subscribes in Envoy's order (clusters, their endpoints, then listeners,
// their routes), hands each response to the part that knows its type, and says when the start is complete.
import { type Clock, systemClock } from "@tulle/timing";
import { type AdsClient, type AdsClientState, type Verdict, connectAds } from "@tulle/xds";
import { clone, create } from "@bufbuild/protobuf";
import { RepeatedWarning } from "@tulle/telemetry";
import { type Node, NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { AdsResponse, ResourceTypeName } from "@tulle/xds";
import type { ProxyBootstrap } from "../bootstrap/compile-bootstrap.ts";
import { productVersion } from "../runtime/product-version.ts";
import { AppliedConfig } from "../apply/applied-config.ts";
import type { ConfigReceiver, ConfigStage } from "../apply/config-update.ts";
import type { ConfigTargets } from "../apply/load-static-resources.ts";
import type { OpenStream } from "./open-stream.ts";
import { clustersPlace, ControlPlaneStats, listenersPlace, SubscriptionStats } from "../apply/subscription-stats.ts";
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
  readonly #config: ConfigReceiver;
  readonly #dynamic: NonNullable<ProxyBootstrap["dynamic"]>;
  readonly #clock: Clock;
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
    this.#config = new AppliedConfig({
      ...targets,
      clock: this.#clock,
      clustersTimeoutMs: dynamic.clustersTimeoutMs,
      isInheritedPort: options.isInheritedPort ?? ((): boolean => false),
      secrets: secrets.applied,
      events: {
        onNeeds: (type, names) => this.#client.subscribe(type, names),
        onWarm: (stage) => this.#isWarm(stage),
      },
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
    secrets.subscribeAggregated = (names) => this.#client.subscribe("SDS", names);
    if (dynamic.subscribesClusters) {
      this.#client.subscribe("CDS", "*");
      this.#clusterStats.onAttempt();
      this.#waitFor(dynamic.clustersTimeoutMs, this.#clusterStats, () => this.#config.giveUpWaiting("clusters"));
    } else {
      this.#config.giveUpWaiting("clusters");
    }
  }

  get state(): AdsClientState {
    return this.#client.state;
  }

  close(): void {
    this.#cancelTimeout();
    this.#config.close();
    this.#client.close();
  }

  /** Secrets are taken each time: what they are for may have come anew. */
  #holds(type: ResourceTypeName, name: string, version: string): boolean {
    return type !== "SDS" && type !== "ECDS" && type !== "NDS" && this.#config.holds(type, name, version);
  }

  async #onResponse(response: AdsResponse): Promise<Verdict> {
    const verdict = await this.#take(response);
    this.#count(response, verdict);
    return verdict;
  }

  #take(response: AdsResponse): Verdict | Promise<Verdict> {
    switch (response.type) {
      case "SDS":
        return this.#secrets.onSecrets(response, { kind: "ads" });
      case "ECDS":
      case "NDS":
        return [...response.resources.keys()].map((name) => ({ name, message: "this type is not subscribed to" }));
      default:
        return this.#config.apply(response);
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
    this.#config.onStreamEnd();
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

  #isWarm(stage: ConfigStage): void {
    if (stage === "clusters") this.#clustersAreWarm();
    else this.#listenersAreWarm();
  }

  #clustersAreWarm(): void {
    if (this.#phase !== "clusters") return;
    this.#phase = "listeners";
    this.#onClustersWarm();
    if (this.#dynamic.subscribesListeners) {
      this.#client.subscribe("LDS", "*");
      this.#listenerStats.onAttempt();
      this.#waitFor(this.#dynamic.listenersTimeoutMs, this.#listenerStats, () =>
        this.#config.giveUpWaiting("listeners"),
      );
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
