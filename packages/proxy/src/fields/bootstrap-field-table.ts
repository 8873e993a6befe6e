// The rows of `fieldTable` for what a proxy is started with: the bootstrap, its overload manager, and where configuration comes from.
import { type FieldRow, noTracing, socketTuning } from "./field-row.ts";

export const bootstrapFieldTable: Readonly<Record<string, FieldRow>> = {
  "envoy.config.bootstrap.v3.Bootstrap": {
    used: "node static_resources dynamic_resources admin cluster_manager overload_manager bootstrap_extensions",
    harmless: {
      node_context_params: "for xDS-TP names, which are not used",
      flags_path: "names runtime flags of Envoy's own",
      deferred_stat_options: "when counters are made",
      stats_flush_interval: "statistics only",
      stats_flush_on_admin: "statistics only",
      stats_eviction_interval: "statistics only",
      stats_config: "counters carry Envoy's default tags of their own accord",
      watchdog: "Envoy's own threads",
      watchdogs: "Envoy's own threads",
      enable_dispatcher_stats: "statistics only",
      stats_server_version_override: "statistics only",
      fatal_actions: "what Envoy does when it crashes",
      default_socket_interface: "Envoy's own sockets",
      inline_headers: "how Envoy stores headers",
      default_regex_engine: "RE2 is the only one",
      perf_tracing_file_path: "Envoy's own tracing",
      memory_allocator_manager: "Envoy's own allocator",
      grpc_async_client_manager_config: "Envoy's own clients",
      enable_worker_cpu_affinity: "performance only",
      use_tcp_for_dns_lookups: "the system's resolver decides",
    },
    warned: {
      stats_sinks: "statistics are read from the admin interface",
      tracing: noTracing,
      layered_runtime: "no runtime key is read",
      dns_resolution_config: "the system's resolver is used",
      typed_dns_resolver_config: "the system's resolver is used",
      application_log_config: "the log has one format",
    },
  },
  "envoy.config.overload.v3.OverloadManager": {
    used: "refresh_interval resource_monitors actions loadshed_points",
    harmless: { buffer_factory_config: "buffers are bounded one by one" },
  },
  "envoy.config.overload.v3.ResourceMonitor": { used: "name typed_config" },
  "envoy.config.overload.v3.OverloadAction": {
    used: "name triggers",
    harmless: { typed_config: "of actions without effect here" },
  },
  "envoy.config.overload.v3.Trigger": { used: "name threshold scaled" },
  "envoy.config.overload.v3.ThresholdTrigger": { used: "value" },
  "envoy.config.overload.v3.ScaledTrigger": { used: "scaling_threshold saturation_threshold" },
  "envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig": { used: "max_heap_size_bytes" },
  "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig": {
    used: "max_active_downstream_connections",
  },
  "envoy.config.bootstrap.v3.Bootstrap.StaticResources": { used: "listeners clusters" },
  "envoy.config.bootstrap.v3.Bootstrap.DynamicResources": { used: "lds_config cds_config ads_config" },
  "envoy.config.bootstrap.v3.Admin": {
    used: "address",
    harmless: {
      profile_path: "Envoy's own profiler",
      socket_options: socketTuning,
      ignore_global_conn_limit: "no global limit is set",
    },
    warned: { access_log: "admin requests are not logged", access_log_path: "admin requests are not logged" },
  },
  "envoy.config.bootstrap.v3.ClusterManager": {
    used: "upstream_bind_config",
    harmless: {
      outlier_detection: "where ejections are logged",
      enable_deferred_cluster_creation: "performance only",
      local_cluster_name: "zone-aware routing needs zones, which are not read",
    },
  },
  "envoy.config.core.v3.ApiConfigSource": {
    used: "api_type transport_api_version grpc_services rate_limit_settings",
    harmless: {
      set_node_on_first_message_only: "the node is sent once either way",
      request_timeout: "REST only",
      refresh_delay: "REST only",
    },
  },
  "envoy.config.core.v3.GrpcService": {
    used: "envoy_grpc google_grpc initial_metadata timeout",
    warned: { retry_policy: "calls are not repeated; streams always are" },
  },
  "envoy.config.core.v3.GrpcService.GoogleGrpc": {
    used: "target_uri channel_credentials call_credentials stat_prefix",
    harmless: { per_stream_buffer_limit_bytes: "performance only" },
  },
  "envoy.config.core.v3.GrpcService.GoogleGrpc.SslCredentials": { used: "root_certs private_key cert_chain" },
  "envoy.config.core.v3.ConfigSource": {
    used: "path path_config_source api_config_source ads self initial_fetch_timeout resource_api_version",
  },
  "envoy.config.core.v3.PathConfigSource": { used: "path watched_directory" },
  "envoy.config.core.v3.RateLimitSettings": { used: "max_tokens fill_rate" },
  "envoy.config.core.v3.GrpcService.EnvoyGrpc": {
    used: "cluster_name authority max_receive_message_length",
    harmless: { skip_envoy_headers: "none are sent" },
    warned: { retry_policy: "calls are not repeated; streams always are" },
  },
};
