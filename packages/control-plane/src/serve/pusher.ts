// The stage `serve`: declares to the ADS server what each connected proxy should have. It sends nothing itself: the
// server compares versions and sends what changed, in make-before-break order.
import { isDeepStrictEqual } from "node:util";
import type { Logger, ProcessSpan, ProcessTracer } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import type {
  Acknowledgement,
  AdsConnection,
  AdsServerHandlers,
  EncodedResource,
  IgnoredRequest,
  Rejection,
  ResourceTypeName,
  Subscription,
} from "@tulle/xds";
import { byName, type ResourceMap } from "../translate/translate.ts";
import { anyAddresses } from "../scope/captured-sidecar.ts";
import { parseNode, type PodPort, type Proxy } from "../scope/proxy.ts";
import type { ProxyView } from "../scope/proxy-view.ts";
import { followsEndpoints, scope } from "../scope/scope.ts";
import { Convergence } from "./convergence.ts";
import type { ControlPlaneMetrics } from "./metrics.ts";
import { EmptyEndpoints } from "./empty-endpoints.ts";
import type { MeshChange, MeshState } from "./mesh-state.ts";
import { type PushFollower, RouteChanges } from "./route-changes.ts";
import type { SecretResources } from "./secret-resources.ts";
import { reasonForNoSecrets } from "./reason-for-no-secrets.ts";
import type { TranslationCache } from "./translation-cache.ts";
import type { TurnedAway } from "./turned-away.ts";

/** Proxies served before other work of this process gets a turn. */
const proxiesPerTurn = 50;

/** Resources of one refusal that the log names: a proxy may refuse all that it has. */
const maxToldOffenders = 10;

type Sent = Parameters<NonNullable<AdsServerHandlers["onSent"]>>[1];

export interface ConnectedProxy {
  readonly proxy: Proxy;
  readonly connection: AdsConnection;
  /** Undefined before the first push. */
  readonly view: ProxyView | undefined;
}

interface Entry {
  readonly connection: AdsConnection;
  /** As the node said it. */
  readonly node: Proxy;
  /** The same with what the store knows of its pod. */
  proxy: Proxy;
  view: ProxyView | undefined;
  /** Clusters whose endpoints the proxy has asked for. */
  wantedEndpoints: ReadonlySet<string>;
  /** What was declared last. */
  endpoints: ResourceMap;
  /** The agent beside it answers DNS questions. */
  wantsNames: boolean;
  /** Secrets that the proxy has asked for. */
  wantedSecrets: ReadonlySet<string>;
  /** The log says that it asks for Secrets and gets none. */
  isToldOfSecrets: boolean;
  readonly convergence: Convergence;
}

/** Each does what those after it do, too. */
const pendingOrder = ["routing", "endpoints", "secrets"] as const;
type Pending = (typeof pendingOrder)[number];

interface Waiting {
  readonly what: Pending;
  /** When the first of the changes came. */
  readonly sinceMs: number;
  /** When it began to wait here. */
  readonly queuedMs: number;
}

interface ChangeSpans {
  readonly change: ProcessSpan;
  readonly push: ProcessSpan | undefined;
}

export interface PusherOptions {
  readonly mesh: MeshState;
  readonly cache: TranslationCache;
  readonly secrets: Pick<SecretResources, "find">;
  readonly metrics: ControlPlaneMetrics;
  readonly turnedAway: Pick<TurnedAway, "note">;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Logger;
  readonly tracer?: Pick<ProcessTracer, "start"> | undefined;
  /** Named ports of a pod, for proxies whose metadata does not say them. */
  readonly podPorts: (namespace: string, pod: string) => readonly PodPort[];
  /** Of a pod, for proxies that have proved to be it: what they say of themselves could lead to what is another's. */
  readonly podLabels: (namespace: string, pod: string) => Readonly<Record<string, string>> | undefined;
  readonly knownOf?: (namespace: string, name: string) => Pick<Proxy, "portsByName" | "locality">;
}

export class Pusher implements AdsServerHandlers {
  readonly #options: PusherOptions;
  readonly #entries = new Map<AdsConnection, Entry>();
  /** One push a proxy at most waits here; what comes meanwhile is merged into it. */
  readonly #pending = new Map<Entry, Waiting>();
  #draining = false;
  /** Of the changes that not every proxy has been sent. */
  #changes: readonly ChangeSpans[] = [];
  readonly #empty = new EmptyEndpoints();
  #follower: PushFollower | undefined;
  readonly #routeChanges: RouteChanges;

  constructor(options: PusherOptions) {
    this.#options = options;
    this.#routeChanges = new RouteChanges(options.cache);
  }

  get connected(): readonly ConnectedProxy[] {
    return [...this.#entries.values()];
  }

  /** Whether a proxy's state may not yet say that something new is meant for it. */
  get isPending(): boolean {
    return this.#pending.size > 0;
  }

  /** Whoever counts who has a change. */
  follow(follower: PushFollower): void {
    this.#follower = follower;
  }

  /** Whether a proxy has answered all that is meant for it, and how. */
  syncOf(connection: AdsConnection): "gone" | "behind" | "inSync" | "refusing" {
    const entry = this.#entries.get(connection);
    if (entry === undefined) return "gone";
    if (this.#pending.has(entry) || !entry.convergence.isSettled) return "behind";
    const refuses = [...connection.status().values()].some(({ state }) => state === "ERROR");
    return refuses ? "refusing" : "inSync";
  }

  meshChanged({ routing, endpoints, sinceMs, span }: MeshChange): void {
    if (span !== undefined) {
      const push = this.#options.tracer?.start("push", { parent: span });
      push?.set("tulle.proxies", this.#entries.size);
      this.#changes = [...this.#changes, { change: span, push }];
    }
    const what = routing ? "routing" : endpoints ? "endpoints" : "secrets";
    for (const entry of this.#entries.values()) {
      if (what !== "secrets" || entry.wantedSecrets.size > 0) this.#request(entry, what, sinceMs);
    }
    if (!this.#draining) this.#endChanges();
  }

  onConnect(connection: AdsConnection): void {
    const { log, metrics, turnedAway, mesh, clock } = this.#options;
    const parsed = parseNode(connection.node);
    if ("problem" in parsed) {
      turnedAway.note(connection.peer, { status: "INVALID_ARGUMENT", details: parsed.problem });
      connection.close("INVALID_ARGUMENT", parsed.problem);
      return;
    }
    // Nobody knows what is beside a proxy that has proved nothing: it is sent what it can use by itself.
    const isProven = connection.peerIdentity !== undefined;
    const node: Proxy = isProven ? parsed.proxy : { ...parsed.proxy, withoutCertificate: true };
    const entry: Entry = {
      connection,
      node,
      proxy: node,
      view: undefined,
      wantedEndpoints: new Set(),
      endpoints: new Map(),
      wantsNames: false,
      wantedSecrets: new Set(),
      isToldOfSecrets: false,
      convergence: new Convergence(metrics.convergenceSeconds, clock, () => this.#follower?.settled(connection)),
    };
    this.#entries.set(connection, entry);
    metrics.connections.set(this.#entries.size);
    if (mesh.snapshot.trustDomain !== undefined && !isProven) {
      log.warning("a proxy has no certificate: it speaks plain text, and nothing where mutual TLS is asked for", {
        proxy: proxyId(entry.proxy),
        peer: connection.peer,
      });
    }
    log.info("proxy connected", { proxy: proxyId(entry.proxy), peer: connection.peer, connection: connection.id });
    metrics.triggers("proxyrequest").increment();
    this.#push(entry, "routing", connection.connectedAtMs);
  }

  /** Everything of the view has been declared when the proxy connected; the server picks what it subscribes to. */
  onSubscribe(connection: AdsConnection, { type, names }: Subscription): void {
    const entry = this.#entries.get(connection);
    if (entry === undefined) return;
    if (type === "NDS") {
      entry.wantsNames = true;
      if (entry.view !== undefined) this.#declareNames(entry, entry.view);
    }
    if (names === "*") return;
    if (type === "SDS") {
      entry.wantedSecrets = names;
      this.#declareSecrets(entry);
      const reason = reasonForNoSecrets(entry);
      if (reason !== undefined && names.size > 0 && !entry.isToldOfSecrets) {
        entry.isToldOfSecrets = true;
        this.#options.log.warning("a proxy asked for Secrets and gets none", { proxy: proxyId(entry.proxy), reason });
      }
    }
    if (type !== "EDS") return;
    entry.wantedEndpoints = names;
    if (entry.view !== undefined) this.#declareEndpoints(entry, entry.view);
  }

  onSent(connection: AdsConnection, { type, nonce, bytes, tookMs }: Sent): void {
    const { metrics } = this.#options;
    metrics.pushes(type).increment();
    metrics.configBytes(type).record(bytes);
    metrics.sendSeconds.record(tookMs / 1000);
    this.#entries.get(connection)?.convergence.sent(type, nonce);
  }

  onAck(connection: AdsConnection, answer: Acknowledgement): void {
    this.#answered(connection, answer);
  }

  onIgnored(_connection: AdsConnection, ignored: IgnoredRequest): void {
    if (ignored.reason === "stale nonce") this.#options.metrics.expiredNonces(ignored.type).increment();
  }

  onInternalError(): void {
    this.#options.metrics.internalErrors.increment();
  }

  onNack(connection: AdsConnection, rejection: Rejection): void {
    const entry = this.#entries.get(connection);
    if (entry === undefined) return;
    this.#options.metrics.rejected(rejection.type);
    this.#answered(connection, rejection);
    const { type, offenders } = rejection;
    for (const { name, message } of offenders.slice(0, maxToldOffenders)) {
      this.#options.log.warning("a proxy refused a resource", {
        proxy: proxyId(entry.proxy),
        type,
        resource: name,
        reason: message,
        ...(offenders.length > maxToldOffenders ? { ofResources: offenders.length } : {}),
      });
    }
  }

  onDisconnect(connection: AdsConnection, reason: string): void {
    const entry = this.#entries.get(connection);
    if (entry === undefined) return;
    this.#entries.delete(connection);
    this.#pending.delete(entry);
    this.#options.metrics.connections.set(this.#entries.size);
    this.#options.log.info("proxy disconnected", { proxy: proxyId(entry.proxy), reason, connection: connection.id });
    this.#follower?.settled(connection);
  }

  #answered(connection: AdsConnection, { type, nonce }: Pick<Acknowledgement, "type" | "nonce">): void {
    const hasAll = (): boolean => [...connection.status().values()].every(({ state }) => state !== "STALE");
    this.#entries.get(connection)?.convergence.answered(type, nonce, hasAll);
  }

  #request(entry: Entry, what: Pending, sinceMs: number): void {
    const before = this.#pending.get(entry);
    if (before !== undefined && pendingOrder.indexOf(before.what) <= pendingOrder.indexOf(what)) return;
    const { clock } = this.#options;
    this.#pending.set(entry, before === undefined ? { what, sinceMs, queuedMs: clock.nowMs() } : { ...before, what });
    if (this.#draining) return;
    this.#draining = true;
    setImmediate(() => this.#drain());
  }

  #drain(): void {
    let served = 0;
    const { clock, metrics } = this.#options;
    for (const [entry, { what, sinceMs, queuedMs }] of this.#pending) {
      if (served === proxiesPerTurn) {
        setImmediate(() => this.#drain());
        return;
      }
      this.#pending.delete(entry);
      metrics.queueSeconds.record((clock.nowMs() - queuedMs) / 1000);
      this.#push(entry, what, sinceMs);
      served += 1;
    }
    this.#draining = false;
    this.#endChanges();
    this.#forgetUnused();
  }

  #endChanges(): void {
    for (const { change, push } of this.#changes) {
      push?.end();
      change.end();
    }
    this.#changes = [];
  }

  #push(entry: Entry, what: Pending, sinceMs: number): void {
    this.#declare(entry, what);
    entry.convergence.pushed(sinceMs);
  }

  #declare(entry: Entry, what: Pending): void {
    const { cache, mesh } = this.#options;
    if (what === "secrets") {
      this.#declareSecrets(entry);
      return;
    }
    const before = entry.view;
    const proxy = this.#withPod(entry);
    if (what === "routing" || before === undefined || proxy !== entry.proxy || followsEndpoints(proxy, before)) {
      entry.proxy = proxy;
      entry.view = scope(mesh.snapshot, proxy, mesh.endpoints);
    }
    const view = entry.view!;
    const { connection } = entry;
    const clustersChanged = view.clusters.key !== before?.clusters.key;
    const ownChanged = view.own.key !== before?.own.key;
    if (clustersChanged || ownChanged) {
      this.#timed("CDS", () =>
        connection.set("CDS", byName([...cache.clusters(view.clusters), ...cache.own(view.own).clusters])),
      );
    }
    this.#timed("EDS", () => this.#declareEndpoints(entry, view));
    if (entry.wantsNames) this.#timed("NDS", () => this.#declareNames(entry, view));
    if (entry.wantedSecrets.size > 0) this.#timed("SDS", () => this.#declareSecrets(entry));
    if (ownChanged) this.#timed("LDS", () => connection.set("LDS", byName(cache.own(view.own).listeners)));
    if (view.routes.key !== before?.routes.key) {
      this.#timed("RDS", () => connection.set("RDS", byName(cache.routes(view.routes))));
      if (before !== undefined)
        this.#follower?.rerouted(connection, () => this.#routeChanges.between(before.routes, view.routes));
    }
    if (before === undefined) connection.set("ECDS", new Map());
  }

  #timed(type: ResourceTypeName, work: () => void): void {
    const startMs = performance.now();
    work();
    this.#options.metrics.pushSeconds(type).record((performance.now() - startMs) / 1000);
  }

  /**
   * The endpoints of the view, and those of clusters that the proxy still waits for though they have left it: an Envoy
   * holds back its answer to CDS until every new cluster has its endpoints (Envoy: ClusterManagerInitHelper). What was
   * there stays as it was, for requests on their way; what never was, is empty.
   */
  #declareEndpoints(entry: Entry, view: ProxyView): void {
    const { cache, mesh } = this.#options;
    const current = cache.endpoints(view.clusters, mesh.endpoints);
    const gone = [...entry.wantedEndpoints].filter((name) => !current.has(name));
    const kept = gone.map((name): [string, EncodedResource] => [
      name,
      entry.endpoints.get(name) ?? this.#empty.of(name),
    ]);
    entry.endpoints = kept.length === 0 ? current : new Map([...current, ...kept]);
    entry.connection.set("EDS", entry.endpoints, current.size);
  }

  #declareNames({ connection, proxy }: Entry, { clusters }: ProxyView): void {
    const { cache, mesh } = this.#options;
    connection.set("NDS", cache.names(clusters, mesh.endpoints, anyAddresses(proxy)));
  }

  /**
   * Secrets of the namespace that the gateway's certificate names, and none on a stream without one: what a node says
   * of itself opens nothing. What is not there is waited for, and what is gone stays with the proxy, as SDS has it.
   */
  #declareSecrets(entry: Entry): void {
    const { connection, wantedSecrets } = entry;
    const namespace = reasonForNoSecrets(entry) === undefined ? connection.peerIdentity?.namespace : undefined;
    const found = [...wantedSecrets].map((name) =>
      namespace === undefined ? undefined : this.#options.secrets.find(name, namespace),
    );
    connection.set("SDS", byName(found.filter((resource) => resource !== undefined)));
  }

  /** The same object as before while nothing has changed: a pod may become known after its proxy. */
  #withPod({ connection, node, proxy }: Entry): Proxy {
    const { podPorts: portsOf, podLabels: labelsOf, knownOf } = this.#options;
    const { namespace, name } = node;
    const podPorts = node.podPorts.length > 0 ? node.podPorts : portsOf(namespace, name);
    const isProven = connection.peerIdentity !== undefined;
    const labels = isProven ? (labelsOf(namespace, name) ?? proxy.labels) : node.labels;
    const known = { ...node, podPorts, labels, ...knownOf?.(namespace, name) };
    return isDeepStrictEqual(known, proxy) ? proxy : known;
  }

  #forgetUnused(): void {
    this.#routeChanges.forget();
    const views = [...this.#entries.values()].flatMap((entry) => (entry.view === undefined ? [] : [entry.view]));
    this.#options.cache.keepOnly(views);
  }
}

/** `<pod>.<namespace>`, as status listings and istioctl name a proxy. */
export function proxyId(proxy: Pick<Proxy, "name" | "namespace">): string {
  return `${proxy.name}.${proxy.namespace}`;
}
