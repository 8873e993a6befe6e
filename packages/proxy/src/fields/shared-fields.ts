// Rows of messages that several others hold: addresses, sources of data, services to call.
import { type FieldRows, noRuntime, oneVersion, socketTuning } from "./field-row.ts";

const core = "envoy.config.core.v3";
const dynamicForward = "envoy.extensions.common.dynamic_forward_proxy.v3";
const tls = "envoy.extensions.transport_sockets.tls.v3";

export const sharedFields: FieldRows = {
  [`${core}.Address`]: { used: "socket_address pipe", told: "envoy_internal_address" },
  [`${core}.SocketAddress`]: "protocol address port_value ipv4_compat",
  [`${core}.Pipe`]: {
    used: "path",
    harmless: { mode: "of sockets that are listened on, which here are IP addresses" },
  },
  [`${core}.CidrRange`]: "address_prefix prefix_len",
  [`${core}.BindConfig`]: {
    used: "source_address extra_source_addresses",
    harmless: {
      freebind: "source addresses must exist",
      socket_options: socketTuning,
    },
  },
  [`${core}.ExtraSourceAddress`]: { used: "address", harmless: { socket_options: socketTuning } },
  [`${core}.Locality`]: { whole: "names of places, which nothing is decided by" },
  [`${core}.Metadata`]: {
    used: "filter_metadata",
    harmless: { typed_filter_metadata: "nothing here reads typed metadata" },
  },
  [`${core}.TransportSocket`]: "name typed_config",
  [`${core}.TypedExtensionConfig`]: "name typed_config",
  [`${core}.HeaderValueOption`]: "header append append_action keep_empty_value",
  [`${core}.HeaderValue`]: "key value raw_value",
  [`${core}.RuntimeFractionalPercent`]: { used: "default_value", harmless: { runtime_key: noRuntime } },
  [`${core}.RuntimeFeatureFlag`]: { used: "default_value", harmless: { runtime_key: noRuntime } },
  [`${core}.RuntimeUInt32`]: { used: "default_value", harmless: { runtime_key: noRuntime } },
  [`${core}.RuntimeDouble`]: { used: "default_value", harmless: { runtime_key: noRuntime } },
  "envoy.type.v3.FractionalPercent": "numerator denominator",
  "envoy.type.v3.Percent": "value",
  "envoy.type.v3.Int32Range": "start end",
  "envoy.type.v3.Int64Range": "start end",
  "envoy.type.v3.DoubleRange": "start end",
  [`${core}.DataSource`]: "filename inline_bytes inline_string environment_variable",
  [`${core}.WatchedDirectory`]: {
    used: "path",
    harmless: { watch_modify: "every change in the directory is looked at" },
  },
  [`${core}.HttpUri`]: "uri cluster timeout",
  [`${core}.HttpService`]: { used: "http_uri request_headers_to_add", warned: { formatters: "values are made once" } },
  [`${core}.RetryPolicy`]: "retry_back_off num_retries retry_on",
  [`${core}.BackoffStrategy`]: {
    used: "base_interval",
    warned: { max_interval: "the pause grows to ten times the base interval" },
  },
  [`${core}.SubstitutionFormatString`]: {
    used: "text_format json_format text_format_source omit_empty_values formatters content_type",
    harmless: { json_format_options: "keys are always sorted" },
  },

  [`${core}.ConfigSource`]: {
    used: "path path_config_source api_config_source ads self initial_fetch_timeout",
    harmless: { resource_api_version: oneVersion },
  },
  [`${core}.AggregatedConfigSource`]: "",
  [`${core}.SelfConfigSource`]: { used: "", harmless: { transport_api_version: oneVersion } },
  [`${core}.PathConfigSource`]: "path watched_directory",
  [`${core}.ApiConfigSource`]: {
    used: "api_type grpc_services rate_limit_settings",
    harmless: {
      transport_api_version: oneVersion,
      set_node_on_first_message_only: "the node is sent once either way",
      request_timeout: "REST only",
      refresh_delay: "REST only",
    },
  },
  [`${core}.RateLimitSettings`]: "max_tokens fill_rate",
  [`${core}.GrpcService`]: {
    used: "envoy_grpc google_grpc initial_metadata timeout",
    warned: { retry_policy: "calls are not repeated; streams always are" },
  },
  [`${core}.GrpcService.EnvoyGrpc`]: {
    used: "cluster_name authority max_receive_message_length",
    harmless: { skip_envoy_headers: "none are sent" },
    warned: { retry_policy: "calls are not repeated; streams always are" },
  },
  [`${core}.GrpcService.GoogleGrpc`]: {
    used: "target_uri channel_credentials call_credentials stat_prefix",
    harmless: { per_stream_buffer_limit_bytes: "performance only" },
  },
  [`${core}.GrpcService.GoogleGrpc.ChannelCredentials`]: {
    used: "ssl_credentials local_credentials",
    told: "google_default",
  },
  [`${core}.GrpcService.GoogleGrpc.SslCredentials`]: "root_certs private_key cert_chain",
  [`${core}.GrpcService.GoogleGrpc.GoogleLocalCredentials`]: "",
  [`${core}.GrpcService.GoogleGrpc.CallCredentials`]: {
    used: "access_token",
    told: `google_compute_engine google_refresh_token service_account_jwt_access google_iam from_plugin sts_service`,
  },

  [`${dynamicForward}.DnsCacheConfig`]: {
    used: `name dns_lookup_family dns_refresh_rate dns_min_refresh_rate dns_failure_refresh_rate host_ttl max_hosts
      dns_query_timeout typed_dns_resolver_config resolved_address_filter`,
    harmless: {
      dns_cache_circuit_breaker: "max_hosts bounds the queries",
      disable_dns_refresh_on_failure: "a failure is asked again by the next request",
      preresolve_hostnames: "resolved by the first request",
    },
  },

  "envoy.type.matcher.v3.AddressMatcher": "ranges invert_match",
  "xds.core.v3.CidrRange": "address_prefix prefix_len",

  "envoy.config.cluster.v3.Cluster.RefreshRate": "base_interval max_interval",
  [`${tls}.SdsSecretConfig`]: "name sds_config",
};
