// Envoy's bootstrap document, checked and taken apart: who we are, where the admin interface listens, what is static,
// and where everything else comes from (config.bootstrap.v3.Bootstrap).
import { isIP } from "node:net";
import type { Bootstrap } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { Node } from "@tulle/xds/envoy/config/core/v3/base_pb";
import {
  type ApiConfigSource,
  ApiConfigSource_ApiType as ApiType,
  type ConfigSource,
} from "@tulle/xds/envoy/config/core/v3/config_source_pb";
import type { Listener } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import type { Secret } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { checkFields } from "../compile/check-fields.ts";
import { durationMs } from "../compile/duration.ts";
import { type Compiled, Place, Problems, compiled } from "../compile/problems.ts";
import { compileOverload } from "../overload/compile-overload.ts";
import type { OverloadSettings } from "../overload/overload-control.ts";

/** ConfigSource.initial_fetch_timeout. */
const defaultInitialFetchTimeoutMs = 15_000;

export interface DynamicSource {
  /** `http://host:port` or `unix:/path` of the ADS server. */
  readonly target: string;
  /** The bootstrap's cluster that leads there; undefined for google_grpc. It is no cluster of the data path. */
  readonly clusterName: string | undefined;
  readonly subscribesClusters: boolean;
  readonly subscribesListeners: boolean;
  /** How long the start waits for a resource type before it goes on without; 0 = for ever. */
  readonly initialFetchTimeoutMs: number;
}

export interface ProxyBootstrap {
  readonly message: Bootstrap;
  readonly node: Node | undefined;
  readonly adminAddress: { readonly ip: string; readonly port: number } | undefined;
  readonly clusters: readonly Cluster[];
  readonly listeners: readonly Listener[];
  readonly secrets: readonly Secret[];
  readonly dynamic: DynamicSource | undefined;
  /** cluster_manager.upstream_bind_config. */
  readonly sourceAddress: string | undefined;
  readonly overload: OverloadSettings;
}

export function compileBootstrap(message: Bootstrap): Compiled<ProxyBootstrap> {
  const problems = new Problems();
  const place = Place.root;
  // Listeners and clusters are checked with their own places when they are compiled.
  checkFields({ ...message, staticResources: undefined }, place, problems);
  const value: ProxyBootstrap = {
    message,
    node: message.node,
    adminAddress: adminAddress(message, place.field("admin").field("address"), problems),
    clusters: message.staticResources?.clusters ?? [],
    listeners: message.staticResources?.listeners ?? [],
    secrets: message.staticResources?.secrets ?? [],
    dynamic: dynamicSource(message, place.field("dynamic_resources"), problems),
    sourceAddress: message.clusterManager?.upstreamBindConfig?.sourceAddress?.address || undefined,
    overload: compileOverload(message.overloadManager, place.field("overload_manager"), problems),
  };
  return compiled(value, problems);
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

function dynamicSource(message: Bootstrap, place: Place, problems: Problems): DynamicSource | undefined {
  const resources = message.dynamicResources;
  if (resources === undefined) return undefined;
  const { cdsConfig, ldsConfig, adsConfig } = resources;
  checkAds(cdsConfig, place.field("cds_config"), problems);
  checkAds(ldsConfig, place.field("lds_config"), problems);
  if (adsConfig === undefined) {
    if (cdsConfig ?? ldsConfig) problems.error(place.field("ads_config"), "is required by cds_config and lds_config");
    return undefined;
  }
  const at = place.field("ads_config");
  const server = adsServer(adsConfig, message, at, problems);
  if (server === undefined) return undefined;
  return {
    ...server,
    subscribesClusters: cdsConfig !== undefined,
    subscribesListeners: ldsConfig !== undefined,
    initialFetchTimeoutMs: durationMs(
      cdsConfig?.initialFetchTimeout ?? ldsConfig?.initialFetchTimeout,
      defaultInitialFetchTimeoutMs,
    ),
  };
}

function checkAds(source: ConfigSource | undefined, place: Place, problems: Problems): void {
  if (source === undefined || source.configSourceSpecifier.case === "ads") return;
  problems.error(place, "only the aggregated stream (ads) is supported");
}

function adsServer(
  source: ApiConfigSource,
  message: Bootstrap,
  place: Place,
  problems: Problems,
): Pick<DynamicSource, "target" | "clusterName"> | undefined {
  if (source.apiType !== ApiType.GRPC && source.apiType !== ApiType.AGGREGATED_GRPC) {
    problems.error(place.field("api_type"), "only GRPC is supported");
  }
  const service = source.grpcServices[0]?.targetSpecifier;
  if (source.grpcServices.length > 1) {
    problems.warning(place.field("grpc_services"), "only the first server is used");
  }
  const at = place.field("grpc_services", 0);
  switch (service?.case) {
    case "googleGrpc": {
      const uri = service.value.targetUri;
      return { target: uri.startsWith("unix:") ? uri : `http://${uri}`, clusterName: undefined };
    }
    case "envoyGrpc": {
      const clusterName = service.value.clusterName;
      const cluster = message.staticResources?.clusters.find((candidate) => candidate.name === clusterName);
      if (cluster === undefined) {
        problems.error(at.field("envoy_grpc").field("cluster_name"), `unknown static cluster '${clusterName}'`);
        return undefined;
      }
      const target = targetOf(cluster);
      if (target === undefined) problems.error(at, `the cluster '${clusterName}' has no endpoint`);
      return target === undefined ? undefined : { target, clusterName };
    }
    default:
      problems.error(at, "an envoy_grpc or google_grpc service is required");
      return undefined;
  }
}

/** The address of a cluster's first endpoint as a gRPC target. */
export function targetOf(cluster: Cluster): string | undefined {
  const endpoint = cluster.loadAssignment?.endpoints[0]?.lbEndpoints[0]?.hostIdentifier;
  const address = endpoint?.case === "endpoint" ? endpoint.value.address?.address : undefined;
  if (address?.case === "pipe") return `unix:${address.value.path}`;
  if (address?.case !== "socketAddress" || address.value.portSpecifier.case !== "portValue") return undefined;
  const host = address.value.address;
  return `http://${host.includes(":") ? `[${host}]` : host}:${address.value.portSpecifier.value}`;
}
