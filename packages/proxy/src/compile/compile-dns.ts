// Clusters whose hosts come by DNS: STRICT_DNS, LOGICAL_DNS and dynamic_forward_proxy, and the resolver that they ask
// (config.cluster.v3.Cluster, extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig).
import { isIP } from "node:net";
import {
  type Cluster as ClusterMessage,
  type Cluster_RefreshRate,
  Cluster_DnsLookupFamily as LookupFamily,
} from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { Address } from "@tulle/xds/envoy/config/core/v3/address_pb";
import type { TypedExtensionConfig } from "@tulle/xds/envoy/config/core/v3/extension_pb";
import type { DnsCacheConfig } from "@tulle/xds/envoy/extensions/common/dynamic_forward_proxy/v3/dns_cache_pb";
import { CaresDnsResolverConfigSchema } from "@tulle/xds/envoy/extensions/network/dns_resolver/cares/v3/cares_dns_resolver_pb";
import { GetAddrInfoDnsResolverConfigSchema } from "@tulle/xds/envoy/extensions/network/dns_resolver/getaddrinfo/v3/getaddrinfo_dns_resolver_pb";
import { DnsEndpoints } from "../cluster/dns-endpoints.ts";
import type { DnsLookup, DnsLookupFamily } from "../cluster/dns-lookup.ts";
import type { DnsRefresh } from "../cluster/dns-refresh.ts";
import { DnsResolver } from "../cluster/dns-resolver.ts";
import { makeDnsStats } from "../cluster/dns-stats.ts";
import { DynamicForwardHosts } from "../cluster/dynamic-forward-hosts.ts";
import { compileCidr } from "../fields/cidr.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import { durationMs } from "../fields/duration.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { decodeTypedConfig, typeUrlOf, unwrapTypedConfig } from "../fields/typed-config.ts";
import { caresResolverMessage, dynamicForwardMessage, getAddrInfoResolverMessage } from "./cluster-fields.ts";
import { buildNamedEndpoints } from "./compile-endpoints.ts";

const defaultRefreshMs = 5000;
const defaultCacheRefreshMs = 60_000;
const defaultCacheMinRefreshMs = 5000;
const defaultCacheHostTtlMs = 300_000;
const defaultCacheMaxHosts = 1024;
const defaultCacheQueryTimeoutMs = 5000;
/** RefreshRate.max_interval, where there is none. */
const failureRateFactor = 10;
const dnsPort = 53;

export function compileDnsEndpoints(
  message: ClusterMessage,
  settings: { readonly type: "strict_dns" | "logical_dns"; readonly observabilityName: string },
  scope: CompileScope,
  place: Place,
  problems: Problems,
): DnsEndpoints {
  const at = place.field("load_assignment");
  const endpoints =
    message.loadAssignment === undefined ? [] : buildNamedEndpoints(message.loadAssignment, at, problems);
  const { type, observabilityName } = settings;
  if (type === "logical_dns" && endpoints.length !== 1) {
    const rule = "LOGICAL_DNS clusters must have a single locality_lb_endpoint and a single lb_endpoint";
    problems.error(at, rule);
  }
  const refresh: DnsRefresh = {
    intervalMs: refreshRate(message.dnsRefreshRate, defaultRefreshMs, place, problems),
    respectsTtl: message.respectDnsTtl,
    minIntervalMs: 0,
    jitterMs: durationMs(message.dnsJitter, 0),
    failure: failureRate(message.dnsFailureRefreshRate, place, problems),
  };
  return new DnsEndpoints({
    endpoints,
    usesAllAddresses: type === "strict_dns",
    holdsStartUp: message.waitForWarmOnInit ?? true,
    lookup: lookupOf(message.typedDnsResolverConfig, scope, place, problems),
    family: lookupFamily(message.dnsLookupFamily),
    refresh,
    stats: makeDnsStats(scope.metrics, observabilityName),
    clock: scope.clock,
    random: scope.random,
    log: scope.logging.logger("upstream"),
  });
}

/** `usesTls`: whether its hosts are spoken to by TLS. */
export function compileDynamicForwardHosts(
  message: ClusterMessage,
  usesTls: boolean,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): DynamicForwardHosts | undefined {
  const discovery = message.clusterDiscoveryType;
  const at = place.field("cluster_type").field("typed_config");
  const typed = discovery.case === "clusterType" ? unwrapTypedConfig(discovery.value.typedConfig) : undefined;
  const config = typed === undefined ? undefined : decodeTypedConfig(dynamicForwardMessage, typed, at, problems);
  const implementation = config?.clusterImplementationSpecifier;
  if (implementation?.case !== "dnsCacheConfig") {
    problems.error(at, "dns_cache_config is required");
    return undefined;
  }
  return compileDnsCache(implementation.value, usesTls, scope, at.field("dns_cache_config"), problems);
}

function compileDnsCache(
  cache: DnsCacheConfig,
  usesTls: boolean,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): DynamicForwardHosts {
  const refresh: DnsRefresh = {
    intervalMs: refreshRate(cache.dnsRefreshRate, defaultCacheRefreshMs, place, problems),
    respectsTtl: true,
    minIntervalMs: durationMs(cache.dnsMinRefreshRate, defaultCacheMinRefreshMs),
    jitterMs: 0,
    failure: failureRate(cache.dnsFailureRefreshRate, place, problems),
  };
  return new DynamicForwardHosts({
    lookup: lookupOf(cache.typedDnsResolverConfig, scope, place, problems),
    family: lookupFamily(cache.dnsLookupFamily),
    maxHosts: cache.maxHosts ?? defaultCacheMaxHosts,
    hostTtlMs: durationMs(cache.hostTtl, defaultCacheHostTtlMs),
    refresh,
    queryTimeoutMs: durationMs(cache.dnsQueryTimeout, defaultCacheQueryTimeoutMs),
    isDenied: addressFilter(cache.resolvedAddressFilter, place.field("resolved_address_filter"), problems),
    defaultPort: usesTls ? 443 : 80,
    clock: scope.clock,
    random: scope.random,
    log: scope.logging.logger("upstream"),
  });
}

function addressFilter(
  matcher: DnsCacheConfig["resolvedAddressFilter"],
  place: Place,
  problems: Problems,
): (ip: string) => boolean {
  if (matcher === undefined) return () => false;
  const { ranges, invertMatch } = matcher;
  const compiled = ranges.map((range, index) => compileCidr(range, place.field("ranges", index), problems));
  return (ip) => compiled.some((range) => range.contains(ip)) !== invertMatch;
}

/** Envoy asks for more than a millisecond. */
function refreshRate(
  rate: ClusterMessage["dnsRefreshRate"],
  fallbackMs: number,
  place: Place,
  problems: Problems,
): number {
  const intervalMs = durationMs(rate, fallbackMs);
  if (intervalMs < 1) problems.error(place.field("dns_refresh_rate"), "value must be greater than 1ms");
  return Math.max(1, intervalMs);
}

function failureRate(
  rate: Cluster_RefreshRate | undefined,
  place: Place,
  problems: Problems,
): DnsRefresh["failure"] | undefined {
  if (rate === undefined) return undefined;
  const at = place.field("dns_failure_refresh_rate");
  const baseMs = durationMs(rate.baseInterval, 0);
  if (baseMs < 1) problems.error(at.field("base_interval"), "value must be greater than 1ms");
  const maxMs = durationMs(rate.maxInterval, baseMs * failureRateFactor);
  if (maxMs < baseMs) problems.error(at, "max_interval must be greater than or equal to the base_interval");
  return { baseMs: Math.max(1, baseMs), maxMs: Math.max(1, maxMs) };
}

function lookupFamily(family: LookupFamily): DnsLookupFamily {
  switch (family) {
    case LookupFamily.V4_ONLY:
      return "v4_only";
    case LookupFamily.V6_ONLY:
      return "v6_only";
    case LookupFamily.V4_PREFERRED:
      return "v4_preferred";
    case LookupFamily.ALL:
      return "all";
    default:
      return "auto";
  }
}

function lookupOf(
  extension: TypedExtensionConfig | undefined,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): DnsLookup {
  const at = place.field("typed_dns_resolver_config").field("typed_config");
  const config = unwrapTypedConfig(extension?.typedConfig);
  if (config === undefined) return scope.lookup;
  switch (config.typeUrl) {
    case typeUrlOf(CaresDnsResolverConfigSchema):
      break;
    case typeUrlOf(GetAddrInfoDnsResolverConfigSchema):
      decodeTypedConfig(getAddrInfoResolverMessage, config, at, problems);
      return scope.lookup;
    default:
      problems.error(at, `Didn't find a registered implementation for type: '${config.typeUrl}'`);
      return scope.lookup;
  }
  const message = decodeTypedConfig(caresResolverMessage, config, at, problems);
  if (message === undefined) return scope.lookup;
  const servers = message.resolvers.map((address, index) =>
    serverAddress(address, at.field("resolvers", index), problems),
  );
  const { queryTimeoutSeconds, queryTries, useResolversAsFallback, dnsResolverOptions } = message;
  const timeoutMs = queryTimeoutSeconds === undefined ? undefined : Number(queryTimeoutSeconds) * 1000;
  const usesSearchDomains = dnsResolverOptions?.noDefaultSearchDomain !== true;
  const isDefault = servers.length === 0 && timeoutMs === undefined && queryTries === undefined && usesSearchDomains;
  if (isDefault || problems.hasErrors) return scope.lookup;
  return new DnsResolver({
    servers: servers.length === 0 ? undefined : servers.filter((server) => server !== undefined),
    isFallback: useResolversAsFallback,
    usesSearchDomains,
    timeoutMs,
    tries: queryTries,
  }).lookup;
}

/** As Node's resolver wants it. */
function serverAddress(message: Address, place: Place, problems: Problems): string | undefined {
  const socket = message.address.case === "socketAddress" ? message.address.value : undefined;
  const version = isIP(socket?.address ?? "");
  if (socket === undefined || version === 0) {
    problems.error(place, `a resolver is named by its IP address: ${socket?.address ?? ""}`);
    return undefined;
  }
  const port = (socket.portSpecifier.case === "portValue" ? socket.portSpecifier.value : 0) || dnsPort;
  return version === 6 ? `[${socket.address}]:${port}` : `${socket.address}:${port}`;
}
