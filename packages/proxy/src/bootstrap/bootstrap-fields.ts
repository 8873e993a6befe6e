// Rows of what a proxy is started with (config.bootstrap.v3). Listeners, clusters and secrets are checked when they are
// compiled.
import { BootstrapSchema } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { checkedMessage } from "../fields/checked-message.ts";
import { type FieldRows, socketTuning, systemResolver } from "../fields/field-row.ts";
import { sharedFields } from "../fields/shared-fields.ts";
import { overloadFields } from "../overload/overload-fields.ts";
import { statsSinkFields } from "../stat-sinks/stat-sink-fields.ts";

const bootstrapFields: FieldRows = {
  "envoy.config.bootstrap.v3.Bootstrap": {
    used: `node dynamic_resources admin cluster_manager overload_manager bootstrap_extensions stats_sinks
      stats_flush_interval`,
    apart: "static_resources",
    harmless: {
      node_context_params: "for xDS-TP names, which are not used",
      flags_path: "names runtime flags of Envoy's own",
      deferred_stat_options: "when counters are made",
      stats_eviction_interval: "statistics only",
      stats_config: "counters carry Envoy's default tags; where those are off, by the names that stats_tags give them",
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
      stats_flush_on_admin: "sinks are sent to every five seconds",
      tracing: "each connection manager has a provider of its own",
      layered_runtime: "no runtime key is read",
      dns_resolution_config: systemResolver,
      typed_dns_resolver_config: systemResolver,
      application_log_config: "the log has one format",
    },
  },
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
  "envoy.config.core.v3.Node": { whole: "sent to the control plane as it is" },
};

export const bootstrapMessage = checkedMessage(
  BootstrapSchema,
  bootstrapFields,
  overloadFields,
  sharedFields,
  statsSinkFields,
);
