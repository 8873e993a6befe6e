// The rows of `fieldTable` for the way to an upstream host: clusters, their load balancing policies and their endpoints.
import { type FieldRow, socketTuning } from "./field-row.ts";

export const clusterFieldTable: Readonly<Record<string, FieldRow>> = {
  "envoy.config.cluster.v3.Cluster": {
    used: `name alt_stat_name type cluster_type eds_cluster_config connect_timeout per_connection_buffer_limit_bytes
      lb_policy load_assignment max_requests_per_connection circuit_breakers common_http_protocol_options
      http_protocol_options typed_extension_protocol_options dns_refresh_rate respect_dns_ttl dns_lookup_family
      upstream_bind_config least_request_lb_config round_robin_lb_config common_lb_config transport_socket
      transport_socket_matches metadata load_balancing_policy dns_failure_refresh_rate http2_protocol_options
      outlier_detection upstream_connection_options`,
    harmless: {
      stats_matcher: "statistics only",
      wait_for_warm_on_init: "clusters are always waited for",
      cleanup_interval: "ORIGINAL_DST only, which is refused by itself",
      close_connections_on_host_health_failure: "no health checks",
      ignore_health_on_host_removal: "no health checks",
      lb_subset_config: "no route carries metadata_match, which is refused by itself",
      track_timeout_budgets: "statistics only",
      track_cluster_stats: "statistics only",
      preconnect_policy: "performance only",
      dns_jitter: "spreads DNS queries",
      lrs_report_endpoint_metrics: "statistics only",
      original_dst_lb_config: "ORIGINAL_DST is refused by itself",
    },
    warned: {
      typed_dns_resolver_config: "the system's resolver is used",
    },
  },
  "envoy.config.cluster.v3.Cluster.EdsClusterConfig": { used: "eds_config service_name" },
  "envoy.config.cluster.v3.Cluster.CustomClusterType": { used: "name typed_config" },
  "envoy.config.cluster.v3.Cluster.CommonLbConfig": {
    used: "healthy_panic_threshold",
    harmless: {
      zone_aware_lb_config: "acts only with local_cluster_name, which is refused",
      update_merge_window: "updates are merged by turn",
      close_connections_on_host_set_change: "connections of dropped hosts drain",
      ignore_new_hosts_until_first_hc: "no health checks",
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
      always_eject_one_host`,
    harmless: {
      successful_active_health_check_uneject_host: "no health checks",
    },
  },
  "envoy.config.core.v3.BindConfig": {
    used: "source_address",
    harmless: {
      freebind: "source addresses must exist",
      socket_options: socketTuning,
      extra_source_addresses: "a source address of the other family is left to the kernel",
    },
  },
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    used: `common_http_protocol_options explicit_http_config use_downstream_protocol_config auto_config
      upstream_http_protocol_options`,
  },
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig": {
    used: "http_protocol_options http2_protocol_options",
  },
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions.UseDownstreamHttpConfig": {
    used: "http_protocol_options",
    harmless: {
      http2_protocol_options: "downstream speaks HTTP/1.1",
      http3_protocol_options: "downstream speaks HTTP/1.1",
    },
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
};
