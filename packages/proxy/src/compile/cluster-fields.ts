// Rows of the way to an upstream host: clusters, their load balancing policies and their endpoints.
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { ClusterLoadAssignmentSchema } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";
import { CaresDnsResolverConfigSchema } from "@tulle/xds/envoy/extensions/network/dns_resolver/cares/v3/cares_dns_resolver_pb";
import { GetAddrInfoDnsResolverConfigSchema } from "@tulle/xds/envoy/extensions/network/dns_resolver/getaddrinfo/v3/getaddrinfo_dns_resolver_pb";
import { ClusterConfigSchema as DynamicForwardSchema } from "@tulle/xds/envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster_pb";
import { LeastRequestSchema } from "@tulle/xds/envoy/extensions/load_balancing_policies/least_request/v3/least_request_pb";
import { RandomSchema } from "@tulle/xds/envoy/extensions/load_balancing_policies/random/v3/random_pb";
import { RoundRobinSchema } from "@tulle/xds/envoy/extensions/load_balancing_policies/round_robin/v3/round_robin_pb";
import { HttpProtocolOptionsSchema } from "@tulle/xds/envoy/extensions/upstreams/http/v3/http_protocol_options_pb";
import { checkedMessage } from "../fields/checked-message.ts";
import type { FieldRows } from "../fields/field-row.ts";
import { protocolFields } from "../fields/protocol-fields.ts";
import { matcherFields } from "../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../fields/shared-fields.ts";
import { healthCheckFields } from "./health-check-fields.ts";

const clusterFields: FieldRows = {
  "envoy.config.cluster.v3.Cluster": {
    used: `name alt_stat_name type cluster_type eds_cluster_config connect_timeout per_connection_buffer_limit_bytes
      lb_policy load_assignment max_requests_per_connection circuit_breakers common_http_protocol_options
      http_protocol_options typed_extension_protocol_options dns_refresh_rate dns_lookup_family
      respect_dns_ttl dns_jitter dns_failure_refresh_rate typed_dns_resolver_config wait_for_warm_on_init
      upstream_bind_config least_request_lb_config round_robin_lb_config common_lb_config transport_socket
      transport_socket_matches metadata load_balancing_policy http2_protocol_options
      outlier_detection upstream_connection_options health_checks ignore_health_on_host_removal
      original_dst_lb_config cleanup_interval`,
    harmless: {
      stats_matcher: "statistics only",
      lb_subset_config: "no route carries metadata_match, which is refused by itself",
      track_timeout_budgets: "statistics only",
      track_cluster_stats: "statistics only",
      preconnect_policy: "performance only",
      lrs_report_endpoint_metrics: "statistics only",
    },
    warned: {
      close_connections_on_host_health_failure: "connections of HTTP end after their requests, those of TCP go on",
    },
  },
  "envoy.config.cluster.v3.Cluster.OriginalDstLbConfig": "use_http_header http_header_name upstream_port_override",
  "envoy.config.cluster.v3.Cluster.EdsClusterConfig": { used: "eds_config service_name" },
  "envoy.config.cluster.v3.Cluster.CustomClusterType": { used: "name typed_config" },
  "envoy.config.cluster.v3.Cluster.CommonLbConfig": {
    used: "healthy_panic_threshold ignore_new_hosts_until_first_hc",
    harmless: {
      zone_aware_lb_config: "acts only with local_cluster_name, which is refused",
      update_merge_window: "updates are merged by turn",
      close_connections_on_host_set_change: "connections of dropped hosts drain",
      locality_weighted_lb_config: "localities without weights only; weights are refused at the endpoints",
      override_host_status: "no stateful session filter",
    },
  },
  "envoy.config.cluster.v3.Cluster.LeastRequestLbConfig": {
    used: "choice_count active_request_bias",
  },
  "envoy.config.cluster.v3.Cluster.RoundRobinLbConfig": { used: "" },
  "envoy.config.cluster.v3.CircuitBreakers": { used: "thresholds" },
  "envoy.config.cluster.v3.CircuitBreakers.Thresholds": {
    used: "priority max_connections max_pending_requests max_requests max_retries retry_budget",
    harmless: { track_remaining: "statistics only", max_connection_pools: "one pool a host" },
  },
  "envoy.config.cluster.v3.CircuitBreakers.Thresholds.RetryBudget": {
    used: "budget_percent min_retry_concurrency",
  },
  "envoy.config.cluster.v3.UpstreamConnectionOptions": {
    used: "tcp_keepalive",
    harmless: { set_local_interface_name_on_upstream_connections: "statistics only" },
    warned: { happy_eyeballs_config: "an endpoint has one address here" },
  },
  "envoy.config.core.v3.TcpKeepalive": { used: "keepalive_probes keepalive_time keepalive_interval" },
  "envoy.config.cluster.v3.OutlierDetection": {
    used: `consecutive_5xx interval base_ejection_time max_ejection_percent enforcing_consecutive_5xx
      enforcing_success_rate success_rate_minimum_hosts success_rate_request_volume success_rate_stdev_factor
      consecutive_gateway_failure enforcing_consecutive_gateway_failure split_external_local_origin_errors
      consecutive_local_origin_failure enforcing_consecutive_local_origin_failure enforcing_local_origin_success_rate
      failure_percentage_threshold enforcing_failure_percentage enforcing_failure_percentage_local_origin
      failure_percentage_minimum_hosts failure_percentage_request_volume max_ejection_time max_ejection_time_jitter
      always_eject_one_host successful_active_health_check_uneject_host`,
  },
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    used: `common_http_protocol_options explicit_http_config use_downstream_protocol_config
      upstream_http_protocol_options`,
    told: "auto_config",
  },
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig": {
    used: "http_protocol_options http2_protocol_options",
    told: "http3_protocol_options",
  },
  "envoy.config.core.v3.UpstreamHttpProtocolOptions": "auto_sni auto_san_validation",
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions.UseDownstreamHttpConfig": {
    used: "http_protocol_options http2_protocol_options",
    harmless: { http3_protocol_options: "downstream speaks HTTP/1.1 or HTTP/2" },
  },
  "envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest": {
    used: "choice_count active_request_bias",
    harmless: { locality_lb_config: "no zone of our own" },
  },
  "envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin": {
    used: "",
    harmless: { locality_lb_config: "no zone of our own" },
  },
  "envoy.extensions.load_balancing_policies.random.v3.Random": {
    used: "",
    harmless: { locality_lb_config: "no zone of our own" },
  },
  "envoy.config.endpoint.v3.ClusterLoadAssignment": { used: "cluster_name endpoints policy" },
  "envoy.config.endpoint.v3.ClusterLoadAssignment.Policy": {
    used: "overprovisioning_factor",
    harmless: { endpoint_stale_after: "the last good endpoints are kept" },
    warned: {
      weighted_priority_health: "hosts are counted; it counts where there are several priorities",
    },
  },
  "envoy.config.endpoint.v3.LocalityLbEndpoints": {
    used: "locality lb_endpoints priority load_balancing_weight load_balancer_endpoints",
    harmless: { proximity: "informative", metadata: "informative" },
  },
  "envoy.config.endpoint.v3.LbEndpoint": {
    used: "endpoint health_status metadata load_balancing_weight",
  },
  "envoy.config.endpoint.v3.Endpoint": {
    used: "address hostname health_check_config",
    harmless: { observability_name: "statistics only" },
    warned: { additional_addresses: "the first address is used" },
  },
  "envoy.config.endpoint.v3.Endpoint.HealthCheckConfig": "port_value hostname address disable_active_health_check",
  "envoy.config.endpoint.v3.LocalityLbEndpoints.LbEndpointList": "lb_endpoints",
  "envoy.config.cluster.v3.Cluster.TransportSocketMatch": "name match transport_socket",
  "envoy.config.cluster.v3.LoadBalancingPolicy": "policies",
  "envoy.config.cluster.v3.LoadBalancingPolicy.Policy": "typed_extension_config",
  "envoy.config.core.v3.DnsResolverOptions": {
    used: "no_default_search_domain",
    warned: { use_tcp_for_dns_lookups: "names are asked for over UDP, over TCP where an answer is too long" },
  },
  "envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig": {
    used: "resolvers use_resolvers_as_fallback dns_resolver_options query_timeout_seconds query_tries",
    harmless: {
      udp_max_queries: "how sockets are shared",
      max_udp_channel_duration: "how sockets are shared",
      reinit_channel_on_timeout: "resolv.conf is followed",
      rotate_nameservers: "spreads DNS queries",
      edns0_max_payload_size: "what does not fit is asked for over TCP",
      qcache_max_ttl: "no answer is kept beside the hosts",
    },
    warned: { filter_unroutable_families: "addresses of both families are used" },
  },
  "envoy.extensions.network.dns_resolver.getaddrinfo.v3.GetAddrInfoDnsResolverConfig": {
    used: "",
    harmless: {
      num_retries: "resolv.conf says how often is asked",
      num_resolver_threads: "performance only",
    },
  },
  "envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig": {
    used: "dns_cache_config",
    harmless: {
      allow_insecure_cluster_options: "TLS takes the server name that is configured",
      allow_coalesced_connections: "HTTP/2 connections are not shared between hosts",
    },
  },
};

const tables = [clusterFields, healthCheckFields, protocolFields, matcherFields, sharedFields] as const;

export const clusterMessage = checkedMessage(ClusterSchema, ...tables);
export const clusterLoadAssignmentMessage = checkedMessage(ClusterLoadAssignmentSchema, ...tables);
export const httpProtocolOptionsMessage = checkedMessage(HttpProtocolOptionsSchema, ...tables);
export const roundRobinMessage = checkedMessage(RoundRobinSchema, ...tables);
export const randomMessage = checkedMessage(RandomSchema, ...tables);
export const leastRequestMessage = checkedMessage(LeastRequestSchema, ...tables);
export const dynamicForwardMessage = checkedMessage(DynamicForwardSchema, ...tables);
export const caresResolverMessage = checkedMessage(CaresDnsResolverConfigSchema, ...tables);
export const getAddrInfoResolverMessage = checkedMessage(GetAddrInfoDnsResolverConfigSchema, ...tables);
