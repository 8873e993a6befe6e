// Envoy's bootstrap document, checked and taken apart: who we are, where the admin interface listens, what is static,
// and where everything else comes from (config.bootstrap.v3.Bootstrap).
import { isIP } from "node:net";
import type { Bootstrap } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { Node } from "@tulle/xds/envoy/config/core/v3/base_pb";
import {
  type ApiConfigSource,
  type ConfigSource,
  type RateLimitSettings,
} from "@tulle/xds/envoy/config/core/v3/config_source_pb";
import type { Listener } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import type { Secret } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { type RateLimit, defaultRateLimit } from "@tulle/xds";
import { checkApiType } from "../fields/check-api-type.ts";
import { checkFields } from "../fields/check-fields.ts";
import { compileGoogleGrpc } from "../fields/compile-google-grpc.ts";
import { compileGrpcService } from "../fields/compile-grpc-service.ts";
import { durationMs } from "../fields/duration.ts";
import { initialFetchTimeoutMs } from "../fields/check-resource-source.ts";
import { type CompileProblem, Place, Problems } from "../fields/problems.ts";
import type { GrpcTarget } from "../http/grpc-target.ts";
import { compileOverload } from "../overload/compile-overload.ts";
import type { OverloadSettings } from "../overload/overload-control.ts";
import { bootstrapMessage } from "./bootstrap-fields.ts";

export interface DynamicSource {
  readonly target: GrpcTarget;
  /** Of requests on the stream (rate_limit_settings). */
  readonly rateLimit: RateLimit | undefined;
  readonly subscribesClusters: boolean;
  readonly subscribesListeners: boolean;
  /** How long the start waits for a resource type before it goes on without; 0 = for ever. */
  readonly clustersTimeoutMs: number;
  readonly listenersTimeoutMs: number;
}

export interface ProxyBootstrap {
  readonly message: Bootstrap;
  readonly node: Node | undefined;
  readonly adminAddress: { readonly ip: string; readonly port: number } | undefined;
  /** The bootstrap's own, and behind them the one that google_grpc makes. */
  readonly clusters: readonly Cluster[];
  readonly listeners: readonly Listener[];
  readonly secrets: readonly Secret[];
  readonly dynamic: DynamicSource | undefined;
  /** cluster_manager.upstream_bind_config. */
  readonly sourceAddress: string | undefined;
  readonly overload: OverloadSettings;
  readonly statsFlushIntervalMs: number;
}

export interface CompiledBootstrap {
  /** As far as it can be read; to be used where no problem is an error. */
  readonly bootstrap: ProxyBootstrap;
  readonly problems: readonly CompileProblem[];
}

export function compileBootstrap(message: Bootstrap): CompiledBootstrap {
  const problems = new Problems();
  const place = Place.root;
  // Listeners and clusters are checked with their own places when they are compiled.
  checkFields(bootstrapMessage, message, place, problems);
  for (const [index, { name }] of message.bootstrapExtensions.entries()) {
    const at = place.field("bootstrap_extensions", index);
    // It says how much memory internal listeners take, which Istio's bootstrap has for all.
    if (name === "envoy.bootstrap.internal_listener") problems.warning(at, "ignored: there are no internal listeners");
    else problems.error(at, `'${name}' is not supported`);
  }
  const clusters = [...(message.staticResources?.clusters ?? [])];
  const bootstrap: ProxyBootstrap = {
    message,
    node: message.node,
    adminAddress: adminAddress(message, place.field("admin").field("address"), problems),
    clusters,
    listeners: message.staticResources?.listeners ?? [],
    secrets: message.staticResources?.secrets ?? [],
    dynamic: dynamicSource(message, clusters, place.field("dynamic_resources"), problems),
    sourceAddress: message.clusterManager?.upstreamBindConfig?.sourceAddress?.address || undefined,
    statsFlushIntervalMs: statsFlushIntervalMs(message, place, problems),
    overload: compileOverload(message.overloadManager, place.field("overload_manager"), problems),
  };
  return { bootstrap, problems: problems.list };
}

/** Envoy's, and its bounds. */
const defaultStatsFlushIntervalMs = 5000;
const maxStatsFlushIntervalMs = 300_000;

function statsFlushIntervalMs({ statsFlushInterval }: Bootstrap, place: Place, problems: Problems): number {
  const intervalMs = durationMs(statsFlushInterval, defaultStatsFlushIntervalMs);
  if (intervalMs >= 1 && intervalMs < maxStatsFlushIntervalMs) return intervalMs;
  problems.error(place.field("stats_flush_interval"), "value must be inside range [1ms, 5m)");
  return defaultStatsFlushIntervalMs;
}

function adminAddress(message: Bootstrap, place: Place, problems: Problems): ProxyBootstrap["adminAddress"] {
  const address = message.admin?.address?.address;
  if (address === undefined || address.case === undefined) return undefined;
  if (address.case !== "socketAddress" || address.value.portSpecifier.case !== "portValue") {
    problems.error(place, "a socket_address with a port_value is required");
    return undefined;
  }
  const ip = address.value.address;
  if (isIP(ip) === 0) problems.error(place, `malformed IP address: ${ip}`);
  if (/^[0:.]+$/.test(ip)) {
    // Whoever reaches the admin interface can stop the proxy and read its configuration.
    problems.error(place, `${ip} opens the admin interface to every network; use 127.0.0.1 or the pod's own address`);
  }
  return { ip, port: address.value.portSpecifier.value };
}

function dynamicSource(
  message: Bootstrap,
  clusters: Cluster[],
  place: Place,
  problems: Problems,
): DynamicSource | undefined {
  const resources = message.dynamicResources;
  if (resources === undefined) return undefined;
  const { cdsConfig, ldsConfig, adsConfig } = resources;
  checkAds(cdsConfig, place.field("cds_config"), problems);
  checkAds(ldsConfig, place.field("lds_config"), problems);
  if (adsConfig === undefined) {
    const needsStream = [cdsConfig, ldsConfig].some((source) => source?.configSourceSpecifier.case === "ads");
    if (needsStream) problems.error(place.field("ads_config"), "is required by cds_config and lds_config");
    return undefined;
  }
  const at = place.field("ads_config");
  const target = adsTarget(adsConfig, clusters, at, problems);
  if (message.node === undefined || message.node.id === "" || message.node.cluster === "") {
    const options = "set them in 'node', or by --service-node and --service-cluster";
    problems.error(Place.root.field("node"), `id and cluster are required by ads_config: ${options}`);
  }
  const rateLimit = compileRateLimit(adsConfig.rateLimitSettings, at.field("rate_limit_settings"), problems);
  if (target === undefined) return undefined;
  return {
    target,
    rateLimit,
    subscribesClusters: cdsConfig !== undefined,
    subscribesListeners: ldsConfig !== undefined,
    clustersTimeoutMs: initialFetchTimeoutMs(cdsConfig),
    listenersTimeoutMs: initialFetchTimeoutMs(ldsConfig),
  };
}

function checkAds(source: ConfigSource | undefined, place: Place, problems: Problems): void {
  const specifier = source?.configSourceSpecifier;
  switch (specifier?.case) {
    case undefined:
      if (source !== undefined) problems.error(place, "ads: {} is required");
      return;
    case "ads":
      return;
    case "apiConfigSource": {
      const advice = "write ads: {} here, and the server into dynamic_resources.ads_config if it serves that stream";
      problems.error(place.field("api_config_source"), `only the aggregated stream is supported; ${advice}`);
      return;
    }
    case "self":
      problems.error(place.field("self"), "a bootstrap comes from no server; write ads: {}");
      return;
    default:
      problems.error(place, "files are not supported; write ads: {}, or the resources into static_resources");
  }
}

function adsTarget(
  source: ApiConfigSource,
  clusters: Cluster[],
  place: Place,
  problems: Problems,
): GrpcTarget | undefined {
  checkApiType(source.apiType, place.field("api_type"), problems);
  const [service, second] = source.grpcServices;
  if (second !== undefined) {
    const advice = "give its cluster several endpoints: they are asked in turn";
    problems.error(place.field("grpc_services"), `one server is supported; ${advice}`);
  }
  const at = place.field("grpc_services", 0);
  if (service === undefined) {
    problems.error(at, "an envoy_grpc or google_grpc service is required");
    return undefined;
  }
  if (service.targetSpecifier.case === "googleGrpc") {
    const compiledGoogle = compileGoogleGrpc(service, service.targetSpecifier.value, at, problems);
    if (compiledGoogle !== undefined) clusters.push(compiledGoogle.cluster);
    return compiledGoogle?.target;
  }
  const target = compileGrpcService(service, at, problems);
  if (target === undefined) return undefined;
  const name = target.clusterName;
  if (clusters.every((cluster) => cluster.name !== name)) {
    problems.error(at.field("envoy_grpc").field("cluster_name"), `unknown static cluster '${name}'`);
  }
  return target;
}

/** RateLimitSettings, with Envoy's defaults. */
function compileRateLimit(
  message: RateLimitSettings | undefined,
  place: Place,
  problems: Problems,
): RateLimit | undefined {
  if (message === undefined) return undefined;
  const perSecond = message.fillRate ?? defaultRateLimit.perSecond;
  if (!(perSecond > 0)) problems.error(place.field("fill_rate"), "value must be greater than 0");
  return { maxTokens: Math.max(1, message.maxTokens ?? defaultRateLimit.maxTokens), perSecond };
}
