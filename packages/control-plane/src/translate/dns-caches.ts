// Names that requests and TLS connections bring, and how proxies look them up (dynamic_forward_proxy). Cluster and
// filter find the same cache by equal settings, and Envoy refuses two of one name that differ.
import { isIPv6 } from "node:net";
import { create } from "@bufbuild/protobuf";
import { metadataServers } from "@tulle/capture";
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
 * address, where its proxy's admin port is, or to a cloud's metadata (169.254.169.254 and others). IPv4 within IPv6
 * would be a way around, and so would a NAT64 on the way, which has no business there (RFC 6052 §3.1).
 */
const denied: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["::", 127],
  ["::ffff:0:0", 96],
  ["fe80::", 10],
  ["64:ff9b::", 104],
  ["64:ff9b::7f00:0", 104],
  ["64:ff9b::a9fe:0", 112],
  ...metadataServers.map((each) => [each, isIPv6(each) ? 128 : 32] as const),
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
