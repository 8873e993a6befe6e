// The one class behind every cluster type. What differs is where hosts come from: configuration, EDS, DNS, the
// authority of each request (dynamic forward proxy), or the destination of each connection (ORIGINAL_DST).
import { ClusterLoad } from "../upstream/cluster-load.ts";
import { drainHostPool } from "../upstream/host-pool.ts";
import type { CircuitBreakerLimits, Cluster, ClusterType, Host, LoadBalancer, TcpKeepAlive } from "./cluster.ts";
import type { ClusterStats } from "./cluster-stats.ts";
import type { TlsTransport } from "../tls/tls-stats.ts";
import { DynamicForwardHosts } from "./dynamic-forward-hosts.ts";
import { OriginalDstHosts } from "./original-dst-hosts.ts";
import type { DestinationFacts } from "../http/destination.ts";
import type { HealthChecker } from "./health-check/health-checker.ts";
import { type EndpointDescription, type HostChecks, HostSet, type MakePicker } from "./host-set.ts";
import type { OutlierDetection } from "./outlier-detection.ts";

/** What is known of a cluster before it has hosts: all of `Cluster` that configuration decides, and how to pick. */
export interface ClusterSettings extends Omit<
  Cluster,
  "loadBalancer" | "hosts" | "load" | "resolveAuthority" | "hostOfDestination" | "outlierDetection" | "healthChecker"
> {
  readonly makePicker: MakePicker;
  readonly panicThresholdPercent: number;
  readonly random: () => number;
  /** Those of every transport that a host may have. */
  readonly tlsTransports: readonly TlsTransport[];
  /** Undefined where no host is ever ejected; `onChange` is called when the choice of hosts has changed. */
  readonly makeOutlierDetection: ((onChange: () => void) => OutlierDetection) | undefined;
  /** Undefined where no host is checked. */
  readonly healthChecks: (HostChecks & { readonly makeChecker: MakeChecker }) | undefined;
}

/** `onChange` is called when the health of the host has changed, `onSuccess` after a check that finds it well. */
export type MakeChecker = (
  cluster: Cluster,
  hooks: { readonly onChange: (host: Host) => void; readonly onSuccess: (host: Host) => void },
) => HealthChecker;

/** Resolves names of STRICT_DNS and LOGICAL_DNS clusters for as long as the cluster lives. */
export interface EndpointSource {
  /** Begins; resolves once the first answer, good or bad, has come. */
  start(update: (endpoints: readonly EndpointDescription[]) => void): Promise<void>;
  stop(): void;
}

export class RuntimeCluster implements Cluster {
  readonly name: string;
  readonly observabilityName: string;
  readonly type: ClusterType;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxConnectionDurationMs: number;
  readonly maxStreamDurationMs: number;
  readonly tcpKeepAlive: TcpKeepAlive | undefined;
  readonly maxRequestsPerConnection: number;
  readonly perConnectionBufferLimitBytes: number;
  readonly enableTrailers: boolean;
  readonly protocol: Cluster["protocol"];
  readonly http2: Cluster["http2"];
  readonly http2Stats: Cluster["http2Stats"];
  readonly sourceAddresses: readonly string[];
  readonly circuitBreakers: CircuitBreakerLimits;
  #load = new ClusterLoad();
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly loadBalancer: LoadBalancer;
  readonly outlierDetection: OutlierDetection | undefined;
  readonly healthChecker: HealthChecker | undefined;
  readonly stats: ClusterStats;
  readonly transportOf: Cluster["transportOf"];
  readonly autoServerName: Cluster["autoServerName"];
  readonly tlsTransports: readonly TlsTransport[];
  readonly hostOfDestination?: (info: DestinationFacts) => Host | undefined;
  readonly resolveAuthority?: (authority: string) => Promise<Host | undefined>;
  readonly #hostSet: HostSet;
  readonly #source: EndpointSource | undefined;
  /** Where hosts come with requests. */
  readonly #askedHosts: DynamicForwardHosts | OriginalDstHosts | undefined;

  constructor(settings: ClusterSettings, source?: EndpointSource, askedHosts?: DynamicForwardHosts | OriginalDstHosts) {
    this.name = settings.name;
    this.observabilityName = settings.observabilityName;
    this.type = settings.type;
    this.connectTimeoutMs = settings.connectTimeoutMs;
    this.idleTimeoutMs = settings.idleTimeoutMs;
    this.maxConnectionDurationMs = settings.maxConnectionDurationMs;
    this.maxStreamDurationMs = settings.maxStreamDurationMs;
    this.tcpKeepAlive = settings.tcpKeepAlive;
    this.maxRequestsPerConnection = settings.maxRequestsPerConnection;
    this.perConnectionBufferLimitBytes = settings.perConnectionBufferLimitBytes;
    this.enableTrailers = settings.enableTrailers;
    this.protocol = settings.protocol;
    this.http2 = settings.http2;
    this.http2Stats = settings.http2Stats;
    this.sourceAddresses = settings.sourceAddresses;
    this.circuitBreakers = settings.circuitBreakers;
    this.metadata = settings.metadata;
    this.stats = settings.stats;
    this.transportOf = settings.transportOf;
    this.autoServerName = settings.autoServerName;
    this.tlsTransports = settings.tlsTransports;
    this.#hostSet = new HostSet({
      makePicker: settings.makePicker,
      panicThresholdPercent: settings.panicThresholdPercent,
      checks: settings.healthChecks,
      stats: settings.stats,
      random: settings.random,
      onDropped: drainHostPool,
    });
    this.loadBalancer = this.#hostSet;
    this.outlierDetection = settings.makeOutlierDetection?.(() => this.#hostSet.refresh());
    this.healthChecker = settings.healthChecks?.makeChecker(this, {
      onChange: (host) => this.#onHealthChange(host),
      onSuccess: (host) => this.outlierDetection?.onCheckSucceeded(host),
    });
    this.#source = source;
    this.#askedHosts = askedHosts;
    if (askedHosts instanceof DynamicForwardHosts) this.resolveAuthority = (authority) => askedHosts.resolve(authority);
    if (askedHosts instanceof OriginalDstHosts) this.hostOfDestination = (info) => askedHosts.hostOf(info);
  }

  get load(): ClusterLoad {
    return this.#load;
  }

  /** Takes the place of an earlier version of itself, whose requests and connections go on. */
  succeed(earlier: RuntimeCluster): void {
    this.#load = earlier.#load;
  }

  get hosts(): readonly Host[] {
    return this.#askedHosts?.hosts() ?? this.#hostSet.hosts;
  }

  /** Replaces the endpoints; hosts whose address stays are kept. */
  updateEndpoints(endpoints: readonly EndpointDescription[]): void {
    this.#hostSet.update(endpoints);
    this.#tellOfHosts();
  }

  #tellOfHosts(): void {
    this.outlierDetection?.setHosts(this.#hostSet.hosts);
    this.healthChecker?.setHosts(this.#hostSet.hosts);
  }

  /** A host that has failed keeps no connections: new ones may take another way (Envoy: `onHostHealthFailure`). */
  #onHealthChange(host: Host): void {
    const hasFailed = host.activeHealth?.hasFailed === true;
    if (hasFailed && host.activeHealth?.awaitsRemoval === true) {
      this.#hostSet.drop(host);
      this.#tellOfHosts();
      return;
    }
    this.#hostSet.refresh();
    if (hasFailed) drainHostPool(host);
  }

  /** Begins to resolve names; resolves when the cluster has what it needs (at once for the types without DNS). */
  start(): Promise<void> {
    return this.#source?.start((endpoints) => this.updateEndpoints(endpoints)) ?? Promise.resolve();
  }

  /** The cluster has left the configuration: resolving ends, connections drain. */
  stop(): void {
    this.#source?.stop();
    this.#askedHosts?.stop();
    this.#hostSet.clear();
    this.#tellOfHosts();
    this.outlierDetection?.stop();
    this.healthChecker?.stop();
  }
}
