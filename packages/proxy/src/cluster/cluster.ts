// A compiled cluster: what the router needs to send a request upstream. Immutable but for its host set, which endpoint
// updates replace, and its counters (Envoy: config.cluster.v3.Cluster, ClusterLoadAssignment).
import type { Http2Options } from "../codec/http2/http2-options.ts";
import type { Http2Stats } from "../codec/http2/http2-stats.ts";
import type { DestinationFacts } from "../http/destination.ts";
import { ipPortText } from "../http/ip-port-text.ts";
import type { UpstreamTransport } from "../tls/upstream-tls.ts";
import type { ClusterLoad } from "../upstream/cluster-load.ts";
import type { ClusterStats } from "./cluster-stats.ts";
import type { OfProcess, OfWorker } from "../worker/ownership.ts";
import type { ActiveHealth, JudgedHost } from "./host-health.ts";
import type { HostOutlierState, OutlierDetection } from "./outlier-detection.ts";

export type ClusterType = "static" | "eds" | "strict_dns" | "logical_dns" | "dynamic_forward_proxy" | "original_dst";

export type HostAddress =
  | { readonly type: "ip"; readonly ip: string; readonly port: number }
  | { readonly type: "pipe"; readonly path: string };

/** What differs in health checks of one endpoint (Endpoint.health_check_config). */
export interface EndpointCheck {
  /** Undefined = its own. */
  readonly address: HostAddress | undefined;
  /** In the place of the address's; 0 = that one. */
  readonly port: number;
  /** Before the check's own host; empty = that one. */
  readonly hostname: string;
  readonly isDisabled: boolean;
}

/** One endpoint. It outlives endpoint updates that keep its address, so pools and counters stay. */
export class Host implements JudgedHost {
  readonly address: HostAddress;
  /** `ip:port` or the path; `%UPSTREAM_HOST%`. */
  readonly addressText: string;
  readonly hostname: string;
  weight: number;
  /** Endpoint metadata as plain JSON by filter name (`istio`, `envoy.lb` …). */
  metadata: Readonly<Record<string, unknown>>;
  healthy: boolean;
  /** Its endpoint's health_status is DEGRADED: others go before it. */
  degraded = false;
  /** Of its locality; empty = none. */
  zone = "";
  /** As its metadata says (`envoy.lb`: `canary`). */
  isCanary = false;
  /** Undefined = checked as the cluster says. */
  check: EndpointCheck | undefined = undefined;
  /** Undefined = nobody checks it. */
  activeHealth: OfProcess<ActiveHealth | undefined> = undefined;
  /** 0 is asked first, others where there are too few healthy hosts (LocalityLbEndpoints.priority). */
  priority: number;
  /** Outlier detection keeps it out of the balancer's choice for now. */
  ejected: OfProcess<boolean> = false;
  /** Made and owned by outlier detection. */
  outlier: OfProcess<HostOutlierState | undefined> = undefined;
  activeRequests: OfWorker<number> = 0;
  /** False once an endpoint update has dropped it: its connections drain. */
  active = true;
  /** Made and owned by the connection pool of the worker; opaque elsewhere. */
  pool: OfWorker<unknown> = undefined;
  /** Made and owned by the metrics filter: label values resolved from `metadata`. */
  metricLabels: OfWorker<unknown> = undefined;
  readonly stats: OfWorker<HostStats>;

  constructor(
    address: HostAddress,
    hostname: string,
    weight: number,
    metadata: Readonly<Record<string, unknown>>,
    healthy: boolean,
    priority = 0,
  ) {
    this.address = address;
    this.addressText = address.type === "ip" ? ipPortText(address.ip, address.port) : address.path;
    this.hostname = hostname;
    this.weight = weight;
    this.metadata = metadata;
    this.healthy = healthy;
    this.priority = priority;
    this.stats = new HostStats();
  }
}

/** Counts shown by the admin's `/clusters`. */
export class HostStats {
  connectionsTotal = 0;
  connectionsActive = 0;
  connectFailures = 0;
  requestsTotal = 0;
  requestsSuccess = 0;
  requestsError = 0;
  requestTimeouts = 0;
}

export interface LoadBalancerContext {
  /** True for a host that this request should avoid if another can be had (Envoy: previous_hosts retry predicate). */
  shouldAvoid(host: Host): boolean;
  /** Host picks tried at most before an avoided host is taken (Envoy: host_selection_retry_max_attempts). */
  readonly maxHostPicks: number;
}

export interface LoadBalancer {
  /** A healthy host by the cluster's policy (or any host in panic); undefined when there is none (503 UH). */
  chooseHost(context: LoadBalancerContext | undefined): Host | undefined;
}

export interface FailureListener {
  /** The host has said to a request that it fails (`x-envoy-immediate-health-check-fail`). */
  failNow(host: Host): void;
}

export interface AutoServerName {
  /** auto_san_validation: the host's certificate must be for it. */
  readonly verifiesCertificate: boolean;
}

/** Envoy: Cluster.circuit_breakers, default priority; what is not set is Envoy's default of 1024 (retries 3). */
export interface CircuitBreakerLimits {
  readonly maxConnections: number;
  readonly maxPendingRequests: number;
  readonly maxRequests: number;
  readonly maxRetries: number;
  /** In place of `maxRetries` where it is set (Envoy: Thresholds.retry_budget). */
  readonly retryBudget: RetryBudget | undefined;
}

/** Each undefined where the system's own value holds. */
export interface TcpKeepAlive {
  readonly idleMs: number | undefined;
  readonly intervalMs: number | undefined;
  readonly probes: number | undefined;
}

/** Retries under way may be this share of the requests under way, or `minConcurrency` if that is more. */
export interface RetryBudget {
  readonly percent: number;
  readonly minConcurrency: number;
}

/** `downstream`: as the client does (HttpProtocolOptions.use_downstream_protocol_config). */
export type UpstreamProtocolChoice = UpstreamProtocol | "downstream";
export type UpstreamProtocol = "HTTP/1.1" | "HTTP/2";

export interface Cluster {
  readonly name: string;
  /** `alt_stat_name`, else the name; `%UPSTREAM_CLUSTER%`. */
  readonly observabilityName: string;
  readonly type: ClusterType;
  readonly connectTimeoutMs: number;
  /** Close an upstream connection that has been idle so long; 0 = never. Envoy's default is one hour. */
  readonly idleTimeoutMs: number;
  /**
   * Life of an upstream connection, which then ends with its request; 0 = no limit
   * (HttpProtocolOptions.max_connection_duration).
   */
  readonly maxConnectionDurationMs: number;
  /** Of one request at a host, with its answer; 0 = no limit (HttpProtocolOptions.max_stream_duration). */
  readonly maxStreamDurationMs: number;
  /** Probes of connections that say nothing (upstream_connection_options.tcp_keepalive); undefined = none. */
  readonly tcpKeepAlive: TcpKeepAlive | undefined;
  /** 0 = no limit (Envoy: HttpProtocolOptions.max_requests_per_connection). */
  readonly maxRequestsPerConnection: number;
  /**
   * Bytes buffered for one upstream connection before its reading pauses (per_connection_buffer_limit_bytes, 1 MiB).
   */
  readonly perConnectionBufferLimitBytes: number;
  /**
   * Trailers of requests and responses pass; otherwise they are read and dropped
   * (Http1ProtocolOptions.enable_trailers).
   */
  readonly enableTrailers: boolean;
  readonly protocol: UpstreamProtocolChoice;
  /** Of connections that speak HTTP/2. */
  readonly http2: Http2Options;
  readonly http2Stats: () => Http2Stats;
  /**
   * Source addresses of upstream connections (upstream_bind_config): the first of a host's family; empty = the kernel
   * chooses.
   */
  readonly sourceAddresses: readonly string[];
  readonly circuitBreakers: CircuitBreakerLimits;
  /**
   * What the circuit breakers' limits are compared with; a cluster that takes the place of another goes on with its
   * load.
   */
  readonly load: OfProcess<ClusterLoad>;
  /** Cluster metadata as plain JSON by filter name. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly loadBalancer: OfWorker<LoadBalancer>;
  /** Hears how tries went; undefined where no host is ever ejected. */
  readonly outlierDetection: OfProcess<OutlierDetection | undefined>;
  /** Hears of hosts that say they have failed; undefined = none is checked. */
  readonly healthChecker: OfProcess<FailureListener | undefined>;
  /** All hosts of now, healthy or not. */
  readonly hosts: readonly Host[];
  readonly stats: OfWorker<ClusterStats>;
  /** How to speak to a host (transport_socket, transport_socket_matches); absent = plain TCP to all. */
  readonly transportOf?: ((host: Host) => UpstreamTransport) | undefined;
  /**
   * The server name of TLS is the request's authority (UpstreamHttpProtocolOptions.auto_sni); absent = it is
   * configured.
   */
  readonly autoServerName?: AutoServerName | undefined;
  /**
   * dynamic_forward_proxy only: the host for an authority, resolved by DNS with a bounded cache; a failure gives
   * `undefined` (503 DF).
   */
  resolveAuthority?(authority: string): Promise<Host | undefined>;
  /**
   * original_dst only: the host that a request or connection was aimed at when it was redirected here; undefined =
   * there is none (503 UH).
   */
  hostOfDestination?(info: DestinationFacts): Host | undefined;
}
