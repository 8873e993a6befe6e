// Which fields of Envoy's messages the proxy acts on, which make no difference here and why, and which are ignored with
// a warning. Every other field that is set refuses the resource (check-fields.ts); messages without a row are read whole.

import { bootstrapFieldTable } from "./bootstrap-field-table.ts";
import { clusterFieldTable } from "./cluster-field-table.ts";
import { type FieldRow, noTracing, socketTuning } from "./field-row.ts";
import { tlsFieldTable } from "./tls-field-table.ts";

const headerChanges =
  "request_headers_to_add request_headers_to_remove response_headers_to_add response_headers_to_remove";
const noRateLimit = "descriptors act only on a rate limit filter, which is refused by itself";

export const fieldTable: Readonly<Record<string, FieldRow>> = {
  ...bootstrapFieldTable,
  ...clusterFieldTable,
  ...tlsFieldTable,
  "envoy.config.route.v3.RouteConfiguration": {
    used: `name virtual_hosts validate_clusters most_specific_header_mutations_wins ignore_port_in_host_matching
      typed_per_filter_config max_direct_response_body_size_bytes metadata ${headerChanges}`,
    harmless: { internal_only_headers: "edge sanitising of our own removes only x-envoy-*" },
  },
  "envoy.config.route.v3.VirtualHost": {
    used: `name domains routes require_tls typed_per_filter_config retry_policy include_request_attempt_count
      include_attempt_count_in_response metadata ${headerChanges}`,
    harmless: { virtual_clusters: "statistics only", rate_limits: noRateLimit },
  },
  "envoy.config.route.v3.Route": {
    used: `name match route redirect direct_response metadata typed_per_filter_config ${headerChanges}`,
    harmless: { decorator: "names a trace span", stat_prefix: "statistics only" },
    warned: { tracing: noTracing },
  },
  "envoy.config.route.v3.RouteMatch": {
    used: `prefix path safe_regex connect_matcher path_separated_prefix case_sensitive runtime_fraction headers
      query_parameters dynamic_metadata`,
  },
  "envoy.config.route.v3.HeaderMatcher": {
    used: `name exact_match safe_regex_match range_match present_match prefix_match suffix_match contains_match
      string_match invert_match treat_missing_header_as_empty`,
  },
  "envoy.config.route.v3.QueryParameterMatcher": { used: "name string_match present_match" },
  "envoy.config.core.v3.RuntimeFractionalPercent": {
    used: "default_value",
    harmless: { runtime_key: "no runtime layer overrides it" },
  },
  "envoy.config.route.v3.RouteAction": {
    used: `cluster cluster_header weighted_clusters cluster_not_found_response_code prefix_rewrite regex_rewrite
      host_rewrite_literal auto_host_rewrite host_rewrite_header append_x_forwarded_host timeout idle_timeout
      retry_policy upgrade_configs max_stream_duration host_rewrite_path_regex priority`,
    harmless: {
      rate_limits: noRateLimit,
      include_vh_rate_limits: noRateLimit,
      hash_policy: "read only by hashing load balancers, which are refused by themselves",
      max_grpc_timeout: "bounds grpc-timeout, which is not read yet",
      grpc_timeout_offset: "bounds grpc-timeout, which is not read yet",
    },
  },
  "envoy.config.route.v3.RouteAction.UpgradeConfig": { used: "upgrade_type enabled connect_config" },
  "envoy.config.route.v3.RouteAction.UpgradeConfig.ConnectConfig": { used: "" },
  "envoy.config.route.v3.RouteAction.MaxStreamDuration": {
    used: "max_stream_duration",
    harmless: {
      grpc_timeout_header_max: "bounds grpc-timeout, which is not read yet",
      grpc_timeout_header_offset: "bounds grpc-timeout, which is not read yet",
    },
  },
  "envoy.config.route.v3.WeightedCluster": {
    used: "clusters total_weight header_name",
    harmless: { runtime_key_prefix: "no runtime layer overrides weights" },
  },
  "envoy.config.route.v3.WeightedCluster.ClusterWeight": {
    used: `name cluster_header weight typed_per_filter_config host_rewrite_literal ${headerChanges}`,
  },
  "envoy.config.route.v3.RetryPolicy": {
    used: `retry_on num_retries per_try_timeout per_try_idle_timeout retry_host_predicate
      host_selection_retry_max_attempts retriable_status_codes retry_back_off retriable_headers
      retriable_request_headers`,
  },
  "envoy.config.route.v3.RedirectAction": {
    used: `https_redirect scheme_redirect host_redirect port_redirect path_redirect prefix_rewrite regex_rewrite
      response_code strip_query`,
  },
  "envoy.config.route.v3.DirectResponseAction": { used: "status body" },
  "envoy.config.core.v3.HeaderValueOption": { used: "header append append_action keep_empty_value" },
  "envoy.config.core.v3.HeaderValue": { used: "key value raw_value" },

  "envoy.config.listener.v3.Listener": {
    used: `name address additional_addresses stat_prefix filter_chains default_filter_chain
      per_connection_buffer_limit_bytes listener_filters listener_filters_timeout continue_on_listener_filters_timeout
      bind_to_port deprecated_v1 access_log use_original_dst traffic_direction`,
    harmless: {
      metadata: "read by no filter",
      drain_type: "drains on removal and on change either way",
      connection_balance_config: "one accepting thread",
      reuse_port: socketTuning,
      enable_reuse_port: socketTuning,
      tcp_backlog_size: socketTuning,
      tcp_fast_open_queue_length: socketTuning,
      max_connections_to_accept_per_socket_event: socketTuning,
      enable_mptcp: socketTuning,
      tcp_keepalive: socketTuning,
      ignore_global_conn_limit: "no global limit is set",
      stats_matcher: "statistics only",
    },
    warned: {
      freebind: "addresses must exist when the listener is bound",
      bypass_overload_manager: "limits of overload hold for every listener",
    },
  },
  "envoy.config.listener.v3.AdditionalAddress": { used: "address", harmless: { tcp_keepalive: socketTuning } },
  "envoy.config.listener.v3.Listener.DeprecatedV1": { used: "bind_to_port" },
  "envoy.config.listener.v3.FilterChain": {
    used: "filter_chain_match filters name metadata transport_socket transport_socket_connect_timeout",
  },
  "envoy.config.listener.v3.FilterChainMatch": {
    used: `destination_port prefix_ranges direct_source_prefix_ranges source_type source_prefix_ranges source_ports
      server_names transport_protocol application_protocols`,
  },
  "envoy.config.listener.v3.Filter": { used: "name typed_config" },
  "envoy.config.listener.v3.ListenerFilter": { used: "name typed_config filter_disabled" },
  "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector": {
    used: "max_client_hello_size close_connection_on_client_hello_parsing_errors",
    harmless: { initial_read_buffer_size: "performance only" },
    warned: {
      enable_ja3_fingerprinting: "fingerprints are not made",
      enable_ja4_fingerprinting: "fingerprints are not made",
    },
  },

  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager": {
    used: `codec_type stat_prefix rds route_config http_filters common_http_protocol_options http_protocol_options
      server_name server_header_transformation max_request_headers_kb stream_idle_timeout request_timeout
      request_headers_timeout drain_timeout access_log use_remote_address xff_num_trusted_hops skip_xff_append via
      generate_request_id preserve_external_request_id always_set_request_id_in_response upgrade_configs normalize_path
      merge_slashes path_with_escaped_slashes_action strip_matching_host_port strip_any_host_port
      http2_protocol_options access_log_options request_id_extension
      forward_client_cert_details set_current_client_cert_details internal_address_config
      http1_safe_max_connection_duration local_reply_config`,
    harmless: {
      delayed_close_timeout: "how long a closing socket may linger",
      stream_flush_timeout: "the idle time-out of the stream covers it",
      stream_error_on_invalid_http_message: "HTTP/1.1 closes the connection after a bad message either way",
      record_route_resolution_stats: "statistics only",
      drain_timeout_jitter: "spreads closing connections",
    },
    warned: { tracing: noTracing, access_log_flush_interval: "streams are logged once, at their end" },
  },
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.SetCurrentClientCertDetails": {
    used: "subject cert chain dns uri",
  },
  "envoy.extensions.filters.network.http_connection_manager.v3.LocalReplyConfig": { used: "mappers body_format" },
  "envoy.extensions.filters.network.http_connection_manager.v3.ResponseMapper": {
    used: "filter status_code body body_format_override headers_to_add",
  },
  "envoy.extensions.filters.network.http_connection_manager.v3.Rds": { used: "config_source route_config_name" },
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter": {
    used: "name typed_config is_optional disabled",
  },
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.UpgradeConfig": {
    used: "upgrade_type enabled",
  },
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.HcmAccessLogOptions": {
    used: "",
    warned: {
      access_log_flush_interval: "streams are logged once, at their end",
      flush_log_on_tunnel_successfully_established: "tunnels are logged once, at their end",
    },
  },
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.InternalAddressConfig": {
    used: "cidr_ranges",
    harmless: { unix_sockets: "listeners have IP addresses" },
  },
  "envoy.config.core.v3.HttpProtocolOptions": {
    used: `idle_timeout max_headers_count max_requests_per_connection headers_with_underscores_action
      max_connection_duration max_stream_duration`,
    harmless: { max_response_headers_kb: "the codec's own limit of 80 KiB holds" },
  },
  "envoy.config.core.v3.Http2ProtocolOptions": {
    used: "connection_keepalive",
    harmless: {
      hpack_table_size: "performance only",
      max_concurrent_streams: "a connection carries few streams of the proxy's own",
      initial_stream_window_size: "performance only",
      initial_connection_window_size: "performance only",
      allow_connect: "the proxy's own calls are no CONNECT",
      max_outbound_frames: "Node's own limits hold",
      max_outbound_control_frames: "Node's own limits hold",
      max_consecutive_inbound_frames_with_empty_payload: "Node's own limits hold",
      max_inbound_priority_frames_per_stream: "Node's own limits hold",
      max_inbound_window_update_frames_per_data_frame_sent: "Node's own limits hold",
      stream_error_on_invalid_http_messaging: "one stream a connection",
      override_stream_error_on_invalid_http_message: "one stream a connection",
      use_oghttp2_codec: "Envoy's own choice of codec",
      max_metadata_size: "metadata frames are dropped",
      enable_huffman_encoding: "performance only",
    },
    warned: {
      allow_metadata: "metadata frames are dropped",
      custom_settings_parameters: "the proxy's own settings are sent",
    },
  },
  "envoy.config.core.v3.KeepaliveSettings": {
    used: "interval timeout interval_jitter",
    harmless: {
      connection_idle_interval: "a ping ahead of a stream on an idle connection, which nobody here waits on",
    },
  },
  "envoy.config.core.v3.Http1ProtocolOptions": {
    used: "allow_absolute_url accept_http_10 enable_trailers",
    harmless: {
      override_stream_error_on_invalid_http_message: "the connection is closed after a bad message",
      use_balsa_parser: "Envoy's own choice of parser",
      allow_custom_methods: "any token is a method here",
    },
    warned: { header_key_format: "names go out in lower case, which RFC 9110 §5.1 makes equal" },
  },
  "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy": {
    used: `stat_prefix cluster weighted_clusters idle_timeout access_log max_connect_attempts
      max_downstream_connection_duration max_downstream_connection_duration_jitter_percentage`,
    harmless: { hash_policy: "read only by hashing load balancers, which are refused by themselves" },
    warned: {
      metadata_match: "every host of the cluster is taken, since there are no subsets of hosts",
      access_log_options: "connections are logged once, at their end",
      access_log_flush_interval: "connections are logged once, at their end",
      flush_access_log_on_connected: "connections are logged once, at their end",
    },
  },
  "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster": { used: "clusters" },
  "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight": {
    used: "name weight",
    warned: { metadata_match: "every host of the cluster is taken, since there are no subsets of hosts" },
  },
  "envoy.extensions.filters.network.rbac.v3.RBAC": {
    used: "rules matcher shadow_rules shadow_matcher shadow_rules_stat_prefix stat_prefix",
    harmless: { enforcement_type: "what the rules ask for stays the same as long as a connection lasts" },
    warned: { delay_deny: "a connection that is denied is closed at once" },
  },
  "envoy.extensions.filters.network.sni_cluster.v3.SniCluster": { used: "" },
  "envoy.config.accesslog.v3.AccessLog": { used: "name filter typed_config" },
  "envoy.extensions.access_loggers.file.v3.FileAccessLog": {
    used: "path format json_format typed_json_format log_format",
  },
  "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter": { used: "expression" },
  "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog": { used: "log_format" },
  "envoy.extensions.access_loggers.stream.v3.StderrAccessLog": { used: "log_format" },
  "envoy.config.core.v3.SubstitutionFormatString": {
    used: "text_format json_format text_format_source omit_empty_values formatters json_format_options content_type",
  },
  "envoy.extensions.filters.http.router.v3.Router": {
    used: "suppress_envoy_headers respect_expected_rq_timeout",
    harmless: {
      dynamic_stats: "statistics only",
      start_child_span: noTracing,
      suppress_grpc_request_failure_code_stats: "statistics only",
      reject_connect_request_early_data: "data after a CONNECT head waits for the answer",
    },
  },

  "envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig": {
    used: "dns_cache_config",
    harmless: {
      allow_insecure_cluster_options: "TLS takes the server name that is configured",
      allow_coalesced_connections: "HTTP/2 connections are not shared between hosts",
    },
  },
  "envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig": {
    used: "name dns_lookup_family dns_refresh_rate host_ttl max_hosts dns_query_timeout dns_failure_refresh_rate",
    harmless: {
      dns_min_refresh_rate: "the refresh rate is what counts",
      dns_cache_circuit_breaker: "max_hosts bounds the queries",
      disable_dns_refresh_on_failure: "a failure is asked again by the next request",
      preresolve_hostnames: "resolved by the first request",
    },
    warned: { typed_dns_resolver_config: "the system's resolver is used" },
  },
  "envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig": {
    used: "dns_cache_config save_upstream_address",
  },

  "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz": {
    used: `grpc_service http_service failure_mode_allow failure_mode_allow_header_add with_request_body clear_route_cache
      status_on_error metadata_context_namespaces filter_enabled filter_enabled_metadata deny_at_disable
      include_peer_certificate stat_prefix allowed_headers disallowed_headers include_tls_session
      enable_dynamic_metadata_ingestion max_denied_response_body_bytes`,
    harmless: {
      transport_api_version: "there is one version",
      charge_cluster_response_stats: "statistics only",
      emit_client_span: "tracing is not built yet",
    },
    warned: {
      typed_metadata_context_namespaces: "there is no typed metadata",
      emit_filter_state_stats: "statistics only",
      validate_mutations: "headers that could not stand in a request are left out",
    },
  },
  "envoy.extensions.filters.http.ext_authz.v3.HttpService": {
    used: "server_uri path_prefix path_override authorization_request authorization_response retry_policy",
  },
  "envoy.extensions.filters.http.ext_authz.v3.CheckSettings": {
    used: "context_extensions disable_request_body_buffering with_request_body",
    harmless: { emit_client_span: "tracing is not built yet" },
  },
  "envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute": { used: "disabled check_settings" },
};
