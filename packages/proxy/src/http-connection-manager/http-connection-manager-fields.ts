// Rows of the connection manager (extensions.filters.network.http_connection_manager.v3).
import { HttpConnectionManagerSchema } from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import { routeFields } from "../compile/route-fields.ts";
import { accessLogFields } from "../fields/access-log-fields.ts";
import { checkedMessage } from "../fields/checked-message.ts";
import type { FieldRows } from "../fields/field-row.ts";
import { matcherFields } from "../fields/matchers/matcher-fields.ts";
import { protocolFields } from "../fields/protocol-fields.ts";
import { sharedFields } from "../fields/shared-fields.ts";
import { customTagFields, managerTracingFields, routeTracingFields } from "../tracing/tracing-fields.ts";

const managerFields: FieldRows = {
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager": {
    used: `codec_type stat_prefix rds route_config http_filters common_http_protocol_options http_protocol_options
      server_name server_header_transformation max_request_headers_kb stream_idle_timeout request_timeout
      request_headers_timeout drain_timeout access_log use_remote_address xff_num_trusted_hops skip_xff_append via
      generate_request_id preserve_external_request_id always_set_request_id_in_response upgrade_configs normalize_path
      merge_slashes path_with_escaped_slashes_action strip_matching_host_port strip_any_host_port
      http2_protocol_options access_log_options access_log_flush_interval flush_access_log_on_new_request request_id_extension
      tracing forward_client_cert_details set_current_client_cert_details internal_address_config
      http1_safe_max_connection_duration local_reply_config delayed_close_timeout`,
    harmless: {
      stream_flush_timeout: "the idle time-out of the stream covers it",
      stream_error_on_invalid_http_message: "HTTP/1.1 closes the connection after a bad message either way",
      record_route_resolution_stats: "statistics only",
      drain_timeout_jitter: "spreads closing connections",
    },
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
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.HcmAccessLogOptions":
    "access_log_flush_interval flush_access_log_on_new_request flush_log_on_tunnel_successfully_established",
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.InternalAddressConfig": {
    used: "cidr_ranges",
    harmless: { unix_sockets: "listeners have IP addresses" },
  },
  "envoy.extensions.filters.network.http_connection_manager.v3.RequestIDExtension": "typed_config",
};

export const httpConnectionManagerMessage = checkedMessage(
  HttpConnectionManagerSchema,
  managerFields,
  routeFields,
  accessLogFields,
  matcherFields,
  protocolFields,
  sharedFields,
  customTagFields,
  routeTracingFields,
  managerTracingFields,
);
