// Names that requests and TLS connections bring, and how proxies look them up (dynamic_forward_proxy). Cluster and
// filter find the same cache by equal settings, and Envoy refuses two of one name that differ.
import { create } from "@bufbuild/protobuf";
import { Cluster_DnsLookupFamily } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import {
  type DnsCacheConfig,
  DnsCacheConfigSchema,
} from "@tulle/xds/envoy/extensions/common/dynamic_forward_proxy/v3/dns_cache_pb";
import { passthroughCluster } from "../names/resource-names.ts";
import { durationOfMs } from "./messages.ts";
import { dnsRefresh } from "./outside-cluster.ts";

/** Of an explicit proxy, which leads anywhere by name. */
export function passthroughDnsCache(): DnsCacheConfig {
  return create(DnsCacheConfigSchema, {
    name: passthroughCluster,
    dnsLookupFamily: Cluster_DnsLookupFamily.V4_PREFERRED,
  });
}

/** So many names at once, each forgotten when nobody has used it for so long (Envoy's own defaults, written out). */
const maxHosts = 1024;
const hostTtlMs = 300_000;

/**
 * Who owns a domain says where its names lead, and a wildcard is not meant to lead to the workload's own loopback
 * address, where its proxy's admin port is, or to a cloud's metadata (169.254.169.254, fd00:ec2::254). IPv4 within IPv6
 * would be a way around.
 */
const denied: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["::", 127],
  ["::ffff:0:0", 96],
  ["fe80::", 10],
  ["fd00:ec2::254", 128],
];

/** Of ServiceEntries with the resolution DYNAMIC_DNS. */
export function dynamicDnsCache(): DnsCacheConfig {
  return create(DnsCacheConfigSchema, {
    name: "dynamic_dns",
    dnsLookupFamily: Cluster_DnsLookupFamily.V4_PREFERRED,
    dnsRefreshRate: dnsRefresh.dnsRefreshRate,
    dnsFailureRefreshRate: dnsRefresh.dnsFailureRefreshRate,
    maxHosts,
    hostTtl: durationOfMs(hostTtlMs),
    resolvedAddressFilter: { ranges: denied.map(([addressPrefix, prefixLen]) => ({ addressPrefix, prefixLen })) },
  });
}

/** Where names come with requests. */
export function dnsCacheOf({ type, isCaptured = false }: DnsCacheUser): DnsCacheConfig {
  return type === "sidecar" && !isCaptured ? passthroughDnsCache() : dynamicDnsCache();
}

interface DnsCacheUser {
  readonly type: "sidecar" | "router";
  readonly isCaptured?: boolean;
}
