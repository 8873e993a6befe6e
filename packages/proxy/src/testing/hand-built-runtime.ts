// Runtime objects made by hand, so that tests of the data path need neither xDS nor the compiler: one listener on a
// free port, routes by path prefix, clusters with a fixed rotation of hosts.
import { alwaysRedacted } from "../format/redacted-names.ts";
import { defaultHttp2Options, defaultUpstreamHttp2Options } from "../codec/http2/http2-options.ts";
import { http2StatsOf } from "../codec/http2/http2-stats.ts";
import { ClusterLoad } from "../upstream/cluster-load.ts";
import { Counter, MetricRegistry } from "@tulle/telemetry";
import { type ClusterStats, makeClusterStats } from "../cluster/cluster-stats.ts";
import { type Cluster, Host } from "../cluster/cluster.ts";
import { createRouterFilter } from "../filters/http/router/router-filter.ts";
import type { HttpFilter } from "../http/filter.ts";
import type { RequestHead } from "../http/message.ts";
import type { ForwardAction, RetryPolicy, RouteAction, RouteMatch, RouteTable } from "../route/route-table.ts";
import type { AccessLog } from "../access-log/access-log.ts";
import type { FilterChain, Listener } from "../listener/listener.ts";
import type { TerminalNetworkFilter } from "../listener/network-filter.ts";
import { HttpFilterChain } from "../http-connection-manager/filter-chain.ts";
import { accessLogObserver, statisticsObserver } from "../http-connection-manager/record-stream.ts";
import { StreamObservers } from "../http-connection-manager/stream-observer.ts";
import { HttpConnectionManager } from "../http-connection-manager/http-connection-manager.ts";
import type { HttpConnectionManagerConfig } from "../http-connection-manager/http-connection-manager-config.ts";
import {
  type HttpConnectionManagerStats,
  makeHttpConnectionManagerStats,
  makeListenerRequestStats,
} from "../http-connection-manager/http-connection-manager-stats.ts";
import { makeListenerStats } from "../listener/listener-stats.ts";
import { Slot } from "../runtime/slot.ts";

export const clusterStats = (): ClusterStats => makeClusterStats(new MetricRegistry(), "hand-built");

export const connectionManagerStats = (): HttpConnectionManagerStats =>
  makeHttpConnectionManagerStats(new MetricRegistry(), "hand-built");

const requestsOfListener = () => makeListenerRequestStats(new MetricRegistry(), "127.0.0.1_80", "hand-built");

/** A cluster whose load balancer takes its hosts in turn, avoiding those that a retry has been at. */
export function handBuiltCluster(name: string, ports: readonly number[], overrides: Partial<Cluster> = {}): Cluster {
  const hosts = ports.map((port) => new Host({ type: "ip", ip: "127.0.0.1", port }, "", 1, {}, true));
  let next = 0;
  return {
    name,
    observabilityName: name,
    type: "static",
    connectTimeoutMs: 5000,
    idleTimeoutMs: 3_600_000,
    maxConnectionDurationMs: 0,
    maxStreamDurationMs: 0,
    tcpKeepAlive: undefined,
    maxRequestsPerConnection: 0,
    perConnectionBufferLimitBytes: 1024 * 1024,
    enableTrailers: false,
    protocol: "HTTP/1.1",
    http2: defaultUpstreamHttp2Options,
    http2Stats: http2StatsOf(new MetricRegistry()),
    sourceAddresses: [],
    circuitBreakers: {
      maxConnections: 1024,
      maxPendingRequests: 1024,
      maxRequests: 1024,
      maxRetries: 3,
      retryBudget: undefined,
    },
    load: new ClusterLoad(),
    outlierDetection: undefined,
    healthChecker: undefined,
    metadata: {},
    hosts,
    loadBalancer: {
      chooseHost: (context) => {
        for (let picks = 0; picks < hosts.length; picks += 1) {
          const host = hosts[next % hosts.length]!;
          next += 1;
          if (context === undefined || !context.shouldAvoid(host) || picks === hosts.length - 1) return host;
        }
        return undefined;
      },
    },
    stats: clusterStats(),
    ...overrides,
  };
}

export function forwardTo(cluster: Cluster | undefined, overrides: Partial<ForwardAction> = {}): ForwardAction {
  const slot = new Slot<Cluster>(cluster?.name ?? "missing");
  slot.current = cluster;
  return {
    type: "forward",
    clusterSlot: slot,
    timeoutMs: 0,
    idleTimeoutMs: undefined,
    maxStreamDurationMs: undefined,
    grpcDuration: undefined,
    grpcTimeout: undefined,
    tellsDuration: false,
    retryPolicy: undefined,
    clusterNotFoundStatus: 503,
    includeRequestAttemptCount: false,
    includeAttemptCountInResponse: false,
    finalizeRequest: () => undefined,
    finalizeResponse: () => undefined,
    responseIsUntouched: true,
    autoHostRewrite: false,
    appendForwardedHost: false,
    upgrades: undefined,
    ...overrides,
  };
}

export function retryPolicy(retryOn: number, numRetries: number, overrides: Partial<RetryPolicy> = {}): RetryPolicy {
  return {
    retryOn,
    numRetries,
    perTryTimeoutMs: 0,
    perTryIdleTimeoutMs: 0,
    retriableStatusCodes: [],
    backOffBaseMs: 25,
    backOffMaxMs: 250,
    avoidPreviousHosts: false,
    hostSelectionMaxAttempts: 1,
    isRetriableResponse: undefined,
    isRetriableRequest: undefined,
    ...overrides,
  };
}

/** Routes by path prefix, the longest first; CONNECT takes the action of `CONNECT`. */
export function prefixRoutes(actions: Readonly<Record<string, RouteAction>>): RouteTable {
  const matches = Object.entries(actions)
    .sort(([a], [b]) => b.length - a.length)
    .map(([prefix, action]): readonly [string, RouteMatch] => [
      prefix,
      {
        route: { name: prefix, metadata: {}, virtualHostMetadata: {}, perFilterConfig: new Map() },
        virtualHostName: "all",
        action,
      },
    ]);
  return {
    name: "hand-built",
    clusterNames: new Set(),
    virtualHostMetadata: () => undefined,
    match: (request: RequestHead) => {
      const subject = request.method === "CONNECT" ? "CONNECT" : request.path;
      return matches.find(([prefix]) => subject.startsWith(prefix))?.[1];
    },
  };
}

/** What configuration may leave out, as Envoy fills it in: compile-listener.test.ts holds our compiler to it. */
export const connectionManagerDefaults = {
  codecType: "auto",
  http2: defaultHttp2Options,
  serverName: "envoy",
  serverHeaderTransformation: "overwrite",
  connectionIdleTimeoutMs: 3_600_000,
  requestHeadersTimeoutMs: 0,
  streamIdleTimeoutMs: 300_000,
  requestTimeoutMs: 0,
  delayedCloseMs: 1000,
  maxStreamDurationMs: 0,
  maxConnectionDurationMs: 0,
  endsConnectionsSafely: false,
  maxRequestsPerConnection: 0,
  maxRequestHeadersBytes: 61_440,
  maxRequestHeadersCount: 100,
  generateRequestId: true,
  preserveExternalRequestId: false,
  alwaysSetRequestIdInResponse: false,
  useRemoteAddress: false,
  xffNumTrustedHops: 0,
  skipXffAppend: false,
  via: "",
  clientCert: { mode: "sanitize", details: { cert: false, chain: false, subject: false, uri: false, dns: false } },
  normalizePath: false,
  mergeSlashes: false,
  pathWithEscapedSlashesAction: "keep_unchanged",
  stripMatchingHostPort: false,
  stripAnyHostPort: false,
  acceptHttp10: false,
  allowAbsoluteUrl: true,
  enableTrailers: false,
  drainTimeoutMs: 5000,
  redactedNames: alwaysRedacted,
  rewriteLocalReply: undefined,
} as const satisfies Partial<HttpConnectionManagerConfig>;

export function handBuiltConnectionManager(
  routes: RouteTable,
  accessLog: AccessLog,
  overrides: Partial<HttpConnectionManagerConfig> = {},
  filters: readonly HttpFilter[] = [],
): HttpConnectionManagerConfig {
  const routeTable = new Slot<RouteTable>(routes.name);
  routeTable.current = routes;
  const router = createRouterFilter({
    suppressEnvoyHeaders: false,
    respectExpectedRequestTimeout: false,
    stats: {
      requests: new Counter(),
      directResponses: new Counter(),
      noRoute: new Counter(),
      noCluster: new Counter(),
      cutOff: new Counter(),
    },
  });
  const stats = connectionManagerStats();
  return {
    statPrefix: "test",
    http2Stats: http2StatsOf(new MetricRegistry()),
    routeTable,
    filterChain: new HttpFilterChain([...filters, router].map((filter) => ({ filter, enablementKey: undefined }))),
    observers: new StreamObservers([statisticsObserver(stats, requestsOfListener()), accessLogObserver(accessLog)]),
    ...connectionManagerDefaults,
    useRemoteAddress: true,
    isInternalAddress: () => false,
    upgradeTypes: new Set(),
    stats,
    ...overrides,
  };
}

/** The connection manager of a chain that has one; a broken test otherwise. */
export function managerOf(chain: FilterChain | undefined): HttpConnectionManagerConfig {
  if (!(chain?.network instanceof HttpConnectionManager)) throw new Error("no connection manager");
  return chain.network.config;
}

export function handBuiltListener(
  of: TerminalNetworkFilter | HttpConnectionManagerConfig,
  port = 0,
  name = "hand-built",
): Listener {
  const network = "open" in of ? of : new HttpConnectionManager(of);
  const only: FilterChain = { name: "only", metadata: {}, transport: { type: "raw" }, networkFilters: [], network };
  return {
    name,
    metadata: {},
    addresses: [{ ip: "127.0.0.1", port }],
    filterChains: [only],
    findChain: () => only,
    listenerFilters: [],
    listenerFiltersTimeoutMs: 0,
    continuesAfterListenerFiltersTimeout: false,
    accessLogs: [],
    perConnectionBufferLimitBytes: 1024 * 1024,
    bindToPort: true,
    usesOriginalDst: false,
    stats: makeListenerStats(new MetricRegistry(), "hand-built"),
  };
}
