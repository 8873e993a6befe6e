// A cluster resource into the object that routes lead to (config.cluster.v3.Cluster). Its hosts come with it (STATIC),
// by EDS, by DNS once it is started, with each request (dynamic_forward_proxy) or connection (ORIGINAL_DST).
import {
  type Cluster as ClusterMessage,
  Cluster_DiscoveryType as DiscoveryType,
} from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { isIP } from "node:net";
import { RoutingPriority } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { ClusterConfigSchema as DynamicForwardSchema } from "@tulle/xds/envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster_pb";
import type { CircuitBreakers_Thresholds_RetryBudget } from "@tulle/xds/envoy/config/cluster/v3/circuit_breaker_pb";
import type {
  CircuitBreakerLimits,
  ClusterType,
  RetryBudget,
  TcpKeepAlive,
  UpstreamProtocolChoice,
} from "../cluster/cluster.ts";
import { clusterScope, makeClusterStats } from "../cluster/cluster-stats.ts";
import { http2StatsOf } from "../codec/http2/http2-stats.ts";
import { HealthChecker } from "../cluster/health-check/health-checker.ts";
import { HealthCheckEvents } from "../cluster/health-check/health-check-events.ts";
import { makeHealthCheckStats } from "../cluster/health-check/health-check-stats.ts";
import { probesOf } from "../cluster/health-check/make-probe.ts";
import { makeOutlierStats, OutlierDetection } from "../cluster/outlier-detection.ts";
import { type ClusterSettings, RuntimeCluster } from "../cluster/runtime-cluster.ts";
import type { SecretSlot } from "../tls/secret-slot.ts";
import { checkFields } from "../fields/check-fields.ts";
import { checkResourceSource, initialFetchTimeoutMs } from "../fields/check-resource-source.ts";
import { compileDnsEndpoints, compileDynamicForwardHosts } from "./compile-dns.ts";
import { buildEndpoints } from "./compile-endpoints.ts";
import { compileHealthCheck } from "./compile-health-check.ts";
import { compileOutlierDetection } from "./compile-outlier-detection.ts";
import { compileLoadBalancing } from "./compile-load-balancing.ts";
import { compileOriginalDst } from "./compile-original-dst.ts";
import { compileUpstreamProtocol } from "./compile-upstream-protocol.ts";
import type { CompileScope, LogFile } from "../fields/compile-scope.ts";
import { durationMs } from "../fields/duration.ts";
import { type Compiled, Place, Problems, compiled } from "../fields/problems.ts";
import { compileUpstreamTransport } from "./compile-upstream-tls.ts";
import { typeUrlOf } from "../fields/typed-config.ts";
import { clusterMessage } from "./cluster-fields.ts";

const defaultConnectTimeoutMs = 5000;
const defaultBufferLimitBytes = 1024 * 1024;
const defaultPanicThresholdPercent = 50;

export interface CompiledCluster {
  readonly cluster: RuntimeCluster;
  /** Resource name of its endpoints where they come by EDS: the cluster is warm once they have. */
  readonly endpointsName: string | undefined;
  /** How long it waits for them (EdsClusterConfig.eds_config.initial_fetch_timeout); 0 = for ever. */
  readonly endpointsTimeoutMs: number;
  readonly usesLocalityWeights: boolean;
  /** What its TLS needs: the cluster is warm once they have come. */
  readonly secretSlots: ReadonlySet<SecretSlot>;
}

/** The cluster, not started: nothing is resolved or connected yet. */
export function compileCluster(message: ClusterMessage, scope: CompileScope): Compiled<CompiledCluster> {
  const problems = new Problems();
  return compiled(buildCluster(message, scope, Place.root, problems), problems);
}

function buildCluster(
  message: ClusterMessage,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): CompiledCluster | undefined {
  checkFields(clusterMessage, message, place, problems);
  if (message.name === "") problems.error(place.field("name"), "value length must be at least 1 characters");
  const type = clusterType(message, place, problems);
  if (type === undefined) return undefined;
  const secretSlots = new Set<SecretSlot>();
  const settings = clusterSettings(message, type, secretSlots, scope, place, problems);
  const withoutSecrets = withHosts(message, type, settings, scope, place, problems);
  return withoutSecrets && { ...withoutSecrets, secretSlots };
}

function clusterType(message: ClusterMessage, place: Place, problems: Problems): ClusterType | undefined {
  const discovery = message.clusterDiscoveryType;
  if (discovery.case === "clusterType") {
    if (discovery.value.typedConfig?.typeUrl === typeUrlOf(DynamicForwardSchema)) return "dynamic_forward_proxy";
    const at = place.field("cluster_type");
    problems.error(at, `Didn't find a registered cluster factory implementation for name: '${discovery.value.name}'`);
    return undefined;
  }
  switch (discovery.case === undefined ? DiscoveryType.STATIC : discovery.value) {
    case DiscoveryType.STATIC:
      return "static";
    case DiscoveryType.STRICT_DNS:
      return "strict_dns";
    case DiscoveryType.LOGICAL_DNS:
      return "logical_dns";
    case DiscoveryType.EDS:
      return "eds";
    case DiscoveryType.ORIGINAL_DST:
      return "original_dst";
    default:
      problems.error(place.field("type"), `unknown value ${String(discovery.value)}`);
      return undefined;
  }
}

function clusterSettings(
  message: ClusterMessage,
  type: ClusterType,
  secretSlots: Set<SecretSlot>,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): ClusterSettings {
  const observabilityName = message.altStatName === "" ? message.name : message.altStatName;
  const protocol = compileUpstreamProtocol(message, place, problems);
  const connectTimeoutMs = durationMs(message.connectTimeout, defaultConnectTimeoutMs);
  if (connectTimeoutMs <= 0) problems.error(place.field("connect_timeout"), "value must be greater than 0s");
  return {
    name: message.name,
    observabilityName,
    type,
    connectTimeoutMs,
    idleTimeoutMs: protocol.idleTimeoutMs,
    maxConnectionDurationMs: protocol.maxConnectionDurationMs,
    maxStreamDurationMs: protocol.maxStreamDurationMs,
    tcpKeepAlive: tcpKeepAlive(message),
    maxRequestsPerConnection: protocol.maxRequestsPerConnection,
    perConnectionBufferLimitBytes: message.perConnectionBufferLimitBytes ?? defaultBufferLimitBytes,
    enableTrailers: protocol.enableTrailers,
    protocol: protocol.protocol,
    http2: protocol.http2,
    http2Stats: http2StatsOf(scope.metrics, clusterScope(observabilityName)),
    sourceAddresses: sourceAddresses(message, scope, place, problems),
    circuitBreakers: circuitBreakers(message),
    metadata: message.metadata?.filterMetadata ?? {},
    makeOutlierDetection: outlierDetection(message, observabilityName, scope, place, problems),
    healthChecks: healthChecks(message, type, protocol.protocol, observabilityName, scope, place, problems),
    makePicker: compileLoadBalancing(message, type, scope.random, place, problems),
    panicThresholdPercent: message.commonLbConfig?.healthyPanicThreshold?.value ?? defaultPanicThresholdPercent,
    random: scope.random,
    stats: makeClusterStats(scope.metrics, observabilityName, scope.node.zone),
    ...compileUpstreamTransport(message, { scope, secrets: secretSlots, observabilityName, problems }, place),
    autoServerName: protocol.autoServerName,
  };
}

/** The cluster's own bind addresses, else the bootstrap's; an unspecified one leaves the choice to the kernel. */
function sourceAddresses(
  message: ClusterMessage,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): readonly string[] {
  const bind = message.upstreamBindConfig;
  const at = place.field("upstream_bind_config");
  const given: string[] = [];
  const take = (address: string | undefined, where: Place): void => {
    if (address === undefined || address === "") return;
    given.push(address);
    if (isIP(address) === 0) problems.error(where, `malformed IP address: ${address}`);
  };
  take(bind?.sourceAddress?.address, at.field("source_address"));
  for (const [index, { address }] of (bind?.extraSourceAddresses ?? []).entries())
    take(address?.address, at.field("extra_source_addresses", index).field("address"));
  if (given.length === 0) take(scope.defaultSourceAddress, at.field("source_address"));
  // Beside others they stay: hosts of their family are not to get an address of the other one.
  return given.every((address) => address === "0.0.0.0" || address === "::") ? [] : given;
}

/** Envoy: CircuitBreakers.Thresholds; routes of priority HIGH are refused, so that DEFAULT is the one that acts. */
function circuitBreakers(message: ClusterMessage): CircuitBreakerLimits {
  const thresholds = message.circuitBreakers?.thresholds.find((entry) => entry.priority === RoutingPriority.DEFAULT);
  return {
    maxConnections: thresholds?.maxConnections ?? 1024,
    maxPendingRequests: thresholds?.maxPendingRequests ?? 1024,
    maxRequests: thresholds?.maxRequests ?? 1024,
    maxRetries: thresholds?.maxRetries ?? 3,
    retryBudget: retryBudget(thresholds?.retryBudget),
  };
}

/** An empty message asks for the system's own times (config.core.v3.TcpKeepalive). */
function tcpKeepAlive(message: ClusterMessage): TcpKeepAlive | undefined {
  const keepAlive = message.upstreamConnectionOptions?.tcpKeepalive;
  if (keepAlive === undefined) return undefined;
  const { keepaliveTime, keepaliveInterval, keepaliveProbes } = keepAlive;
  const ms = (seconds: number | undefined): number | undefined => (seconds === undefined ? undefined : seconds * 1000);
  return { idleMs: ms(keepaliveTime), intervalMs: ms(keepaliveInterval), probes: keepaliveProbes };
}

/** Envoy: CircuitBreakers.Thresholds.RetryBudget, with its defaults. */
function retryBudget(message: CircuitBreakers_Thresholds_RetryBudget | undefined): RetryBudget | undefined {
  if (message === undefined) return undefined;
  return { percent: message.budgetPercent?.value ?? 20, minConcurrency: message.minRetryConcurrency ?? 3 };
}

function outlierDetection(
  message: ClusterMessage,
  clusterName: string,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): ((onChange: () => void) => OutlierDetection) | undefined {
  const settings = compileOutlierDetection(message.outlierDetection, place.field("outlier_detection"), problems);
  if (settings === undefined) return undefined;
  const stats = makeOutlierStats(scope.metrics, clusterName);
  const { clock, random } = scope;
  const log = scope.logging.logger("upstream");
  return (onChange) => new OutlierDetection({ clusterName, settings, stats, clock, random, log, onChange });
}

function healthChecks(
  message: ClusterMessage,
  type: ClusterType,
  protocol: UpstreamProtocolChoice,
  clusterName: string,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): ClusterSettings["healthChecks"] {
  const settings = compileHealthCheck(message, { environment: scope, protocol, problems }, place);
  if (settings === undefined) return undefined;
  if (type === "dynamic_forward_proxy" || type === "original_dst")
    problems.error(place.field("health_checks"), "hosts that requests name are not checked");
  const { clock, random } = scope;
  const stats = makeHealthCheckStats(scope.metrics, clusterName);
  const path = message.healthChecks[0]!.eventLogPath;
  const log = scope.logging.logger("hc");
  const file = path === "" ? undefined : openEventLog(path, scope, place, problems);
  const events = new HealthCheckEvents({ clusterName, checkerType: settings.check.type, clock, log, file });
  const makeProbe = probesOf(settings, stats);
  return {
    ignoresNewHosts: message.commonLbConfig?.ignoreNewHostsUntilFirstHc ?? false,
    keepsHealthyHosts: !message.ignoreHealthOnHostRemoval,
    makeChecker: (cluster, hooks) =>
      new HealthChecker(cluster, { settings, stats, events, clock, random, makeProbe, ...hooks }),
  };
}

function openEventLog(path: string, scope: CompileScope, place: Place, problems: Problems): LogFile | undefined {
  try {
    return scope.openAccessLog(path);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    problems.error(place.field("health_checks", 0).field("event_log_path"), `cannot be opened: ${reason}`);
    return undefined;
  }
}

function withHosts(
  message: ClusterMessage,
  type: ClusterType,
  settings: ClusterSettings,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): Omit<CompiledCluster, "secretSlots"> | undefined {
  const usesLocalityWeights = message.commonLbConfig?.localityConfigSpecifier.case === "localityWeightedLbConfig";
  const bare = { endpointsName: undefined, endpointsTimeoutMs: 0, usesLocalityWeights };
  const assignment = message.loadAssignment;
  const at = place.field("load_assignment");
  switch (type) {
    case "eds": {
      if (assignment !== undefined) problems.error(at, "load_assignment is not allowed with EDS");
      const eds = message.edsClusterConfig;
      if (eds === undefined) {
        problems.error(place.field("eds_cluster_config"), "cannot create an EDS cluster without an EDS config");
        return undefined;
      }
      checkResourceSource(eds.edsConfig, place.field("eds_cluster_config").field("eds_config"), problems);
      const endpointsName = eds.serviceName === "" ? message.name : eds.serviceName;
      const endpointsTimeoutMs = initialFetchTimeoutMs(eds.edsConfig);
      return { cluster: new RuntimeCluster(settings), endpointsName, endpointsTimeoutMs, usesLocalityWeights };
    }
    case "static": {
      const endpoints =
        assignment === undefined ? [] : buildEndpoints(assignment, { usesLocalityWeights }, at, problems);
      if (problems.hasErrors) return undefined;
      const cluster = new RuntimeCluster(settings);
      cluster.updateEndpoints(endpoints);
      return { cluster, ...bare };
    }
    case "strict_dns":
    case "logical_dns": {
      const { observabilityName } = settings;
      const source = compileDnsEndpoints(message, { type, observabilityName }, scope, place, problems);
      return { cluster: new RuntimeCluster(settings, source), ...bare };
    }
    case "dynamic_forward_proxy":
      return {
        cluster: new RuntimeCluster(
          settings,
          undefined,
          compileDynamicForwardHosts(message, settings.tlsTransports.length > 0, scope, place, problems),
        ),
        ...bare,
      };
    case "original_dst": {
      const hosts = compileOriginalDst(message, settings, scope, place, problems);
      return { cluster: new RuntimeCluster(settings, undefined, hosts), ...bare };
    }
  }
}
